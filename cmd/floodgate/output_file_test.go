//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Others may read a report, as any file that a program writes.
func TestTheModeOfAReport(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report")
	if err := writeOutput(name, func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v, want the mode 644", info, err)
	}
}

// A report that cannot be written leaves nothing behind.
func TestAReportThatFailsLeavesNoFile(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("the report cannot be made")
	if err := writeOutput(filepath.Join(dir, "report"), func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("says %v, want %v", err, broken)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 0 {
		t.Errorf("the folder has %v, %v, want nothing", found, err)
	}
}

// A report names the files in the order of the command line.
func TestTheFilesOfAReplayAreInOrder(t *testing.T) {
	first, second := file(t, "first.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "second.yaml", "policies: [{name: a, limits: 1/h}]")
	log := `192.0.2.1 - - [20/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1` + "\n"
	out, _ := expect(t, exitFine, log, "replay", first, "-", "--against", second, "--quiet")
	if i, j := strings.Index(out, "first.yaml: "), strings.Index(out, "second.yaml: "); i < 0 || j < i {
		t.Errorf("says\n%s\nwant first.yaml before second.yaml", out)
	}
}
