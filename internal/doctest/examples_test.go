package doctest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProgramsOfPagesAreTheExamples(t *testing.T) {
	root := root(t)
	lookAtEverything(t, root)
	pages, _, err := ReadPages(root, existing(root, documents)...)
	if err != nil {
		t.Fatal(err)
	}
	problems, compared, err := CheckExamples(root, pages)
	if err != nil {
		t.Fatal(err)
	}
	report(t, problems)
	if compared < 4 {
		t.Errorf("only %d programs were compared: the test sees nothing", compared)
	}
}

func TestProgramsThatAreNotTheExample(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"examples/README.md":      "[same](same/main.go)\n",
		"examples/same/main.go":   "// Command same is package main.\npackage main\n\nfunc main() {}\n",
		"examples/lonely/main.go": "package main\n",
		"examples/t/a_test.go":    "// This file is a test.\n\npackage a_test\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	block := func(example, text string) string {
		return "<!-- example: " + example + " -->\n```go\n" + text + "```\n\n"
	}
	page, problems := parsePage("page.md", block("same", "package main\n\nfunc main() {}\n")+block("same", "package main\n\nfunc main() { }\n")+block("none", "package main\n"))
	report(t, problems)
	tests, problems := parsePage("tests.md", block("t/a_test.go", "package a_test\n")+"```go\npackage main\n```\n\n```go\npackage b_test\n```\n\n```go\nx := 1\n```\n")
	report(t, problems)
	problems, compared, err := CheckExamples(root, []*Page{page, tests})
	if err != nil || compared != 3 {
		t.Fatal(compared, err)
	}
	var found []string
	for _, p := range problems {
		text, _, _ := strings.Cut(p.String(), " "+root)
		found = append(found, text)
	}
	want := []string{
		"page.md:10: the program is not the one of examples/same/main.go: copy one to the other",
		"page.md:17: the comment example: open",
		"examples/lonely/main.go:1: no test starts it: no page has the program, and there is no test file beside it",
		"examples/README.md:1: there is no link to lonely/main.go",
		"examples/README.md:1: there is no link to t/a_test.go",
	}
	if !slices.Equal(found, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}
