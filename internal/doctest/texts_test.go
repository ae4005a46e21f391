package doctest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTextsOfLogsAndErrorsAreThoseOfTheCode(t *testing.T) {
	root := root(t)
	lookAtEverything(t, root)
	pages, _, err := ReadPages(root, existing(root, documents)...)
	if err != nil {
		t.Fatal(err)
	}
	problems, found, err := CheckTexts(root, pages)
	if err != nil {
		t.Fatal(err)
	}
	report(t, problems)
	if found < 6 {
		t.Errorf("only %d texts were found: the test sees nothing", found)
	}
}

func TestTextsThatTheCodeDoesNotHave(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go":      "package a // the disk is full\n",
		"a_test.go": "package a // only in a test\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, problems := parsePage("page.md", "The log has `disk is full`.\nIf the error has `only in a test` or `no such text`, read on. It has `this`.\n\n| the log has | meaning |\n| --- | --- |\n| `is full` | `x` |\n| `is empty` | `disk is full` |\n\n| `other` | |\n")
	report(t, problems)
	problems, found, err := CheckTexts(root, []*Page{page})
	if err != nil || found != 5 {
		t.Fatal(problems, found, err)
	}
	want := []Problem{
		{"page.md", 2, "no Go file has the text only in a test"}, {"page.md", 2, "no Go file has the text no such text"},
		{"page.md", 7, "no Go file has the text is empty"},
	}
	if !slices.Equal(problems, want) {
		t.Errorf("found %v, want %v", problems, want)
	}
}
