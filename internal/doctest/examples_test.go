package doctest

import (
	"os"
	"path/filepath"
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
	if compared < 10 {
		t.Errorf("only %d programs were compared: the test sees nothing", compared)
	}
}

func TestProgramsThatAreNotTheExample(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"examples/README.md":      "[same](same/main.go)\n",
		"examples/same/main.go":   "// Command same is package main.\npackage main\n\nfunc main() {}\n",
		"examples/lonely/main.go": "package main\n",
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
	problems, compared, err := CheckExamples(root, []*Page{page})
	if err != nil || compared != 2 {
		t.Fatal(compared, err)
	}
	var found []string
	for _, p := range problems {
		found = append(found, p.String())
	}
	const want = "page.md:10: the program is not the one of examples/same/main.go: copy one to the other\n" +
		"page.md:17: the comment example: open "
	if text := strings.Join(found, "\n"); !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "examples/README.md:1: there is no link to lonely/main.go") || len(found) != 3 {
		t.Errorf("found\n%s", text)
	}
}
