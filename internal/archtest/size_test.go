package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxLines is the most lines of a file, which tells one story.
const maxLines = 600

func TestFilesAreShort(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || ext != ".go" && ext != ".lua":
			return nil
		}
		files++
		text, err := os.ReadFile(path) //nolint:gosec // a file of the project
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, at most %d are allowed: divide it by subject", strings.TrimPrefix(path, "../../"), n, maxLines)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("found %d files only", files)
	}
}
