package doctest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// broken is a problem that has to be found: where, and a part of its text.
type broken struct {
	line int
	text string
}

// wantProblems compares what was found with what has to be.
func wantProblems(t *testing.T, found []Problem, want []broken) {
	t.Helper()
	for _, p := range found {
		t.Log(p)
	}
	for _, b := range want {
		n := 0
		for _, p := range found {
			if p.Line == b.line && strings.Contains(p.Text, b.text) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q in line %d was found %d times", b.text, b.line, n)
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d problems were found, not %d", len(found), len(want))
	}
}

// readBroken reads a document of testdata as if testdata was the tree.
func readBroken(t *testing.T, name string) ([]*Page, []Problem) {
	t.Helper()
	pages, problems, err := ReadPages(filepath.Join(root(t), "internal/doctest/testdata"), name)
	if err != nil {
		t.Fatal(err)
	}
	return pages, problems
}

func TestBrokenForms(t *testing.T) {
	pages, problems := readBroken(t, "forms.md")
	problems = append(problems, CheckLinks(filepath.Join(root(t), "internal/doctest/testdata"), pages)...)
	found, err := CheckShell(root(t), pages)
	if err != nil {
		t.Fatal(err)
	}
	problems = append(append(problems, found...), CheckFormat(pages)...)
	found, _ = CheckPolicies(pages)
	problems = append(problems, found...)
	_, found = consoles(pages)
	problems = append(problems, found...)
	w := &Workspace{Root: root(t), Dir: t.TempDir()}
	if found, err = w.Add(pages); err != nil {
		t.Fatal(err)
	}
	wantProblems(t, append(problems, found...), []broken{
		{3, `unknown comment "polcy"`},
		{8, "missing.md: there is no such file"},
		{8, "link to #nowhere: there is no such heading"},
		{8, "compile.md#nowhere: there is no such heading"},
		{8, "it leads out of the repository"},
		{9, "doctest_test.go#part: there is no such file"},
		{9, "gone.html: there is no such file"},
		{22, "needs a comment <!-- go: PRELUDE -->"},
		{27, `there is no prelude "nowhere"`},
		{32, "names 2 preludes, the block has 1 lines"},
		{37, "needs the language go"},
		{44, "fortnight"},
		{49, "of the language yaml"},
		{56, "a warning"},
		{62, "the comment announces a warning"},
		{66, "no program ./examples/nowhere"},
		{66, "no target nothing"},
		{71, "the test cannot run this: rm"},
		{75, `needs a command behind "$ "`},
		{80, "gofmt would write"},
		{83, "the block has no end"},
		{84, "needs a comment <!-- go: PRELUDE -->"},
	})
}

func TestBrokenCode(t *testing.T) {
	pages, problems := readBroken(t, "compile.md")
	w := &Workspace{Root: root(t), Dir: t.TempDir()}
	found, err := w.Add(pages)
	if err != nil {
		t.Fatal(err)
	}
	problems = append(append(problems, found...), w.Build(t.Context())...)
	wantProblems(t, problems, []broken{{7, "undefined: nothing"}, {13, "undefined: nothing"}, {19, "undefined: nothing"}})
}

func TestBrokenOutput(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = 2 * time.Second
	pages, problems := readBroken(t, "run.md")
	w := &Workspace{Root: root(t), Dir: t.TempDir()}
	found, err := w.Add(pages)
	if err != nil {
		t.Fatal(err)
	}
	problems = append(append(problems, found...), w.Build(t.Context())...)
	problems = append(problems, w.RunPrograms(t.Context())...)
	problems = append(problems, w.RunTests(t.Context())...)
	problems = append(problems, w.RunConsoles(t.Context(), pages)...)
	wantProblems(t, problems, []broken{
		{4, "exit status 3"},
		{35, "the program above printed"},
		{41, "does not end within 2s"},
		{49, "TestNo"},
		{65, "the document has"},
	})
}
