package doctest

import "testing"

func TestNamesInDocuments(t *testing.T) {
	root := root(t)
	lookAtEverything(t, root)
	pages, _, err := ReadPages(root, existing(root, documents)...)
	if err != nil {
		t.Fatal(err)
	}
	problems, checked, err := CheckNames(root, pages)
	if err != nil {
		t.Fatal(err)
	}
	report(t, problems)
	t.Logf("%d names", checked)
	if checked == 0 {
		t.Error("no name was found")
	}
}

func TestBrokenNames(t *testing.T) {
	page, _ := parsePage("names.md", "`core.New`, `core.Config.Store`, `core.Store.Open`, `redisstore.New(client)`, `limiter.Nothing`\n"+
		"`core.Nothing`, and core.Nothing without a code span\n"+
		"`Rule: core.Config{}` and `f(core.Config.Nothing, keyfuncs.Nothing())`\n"+
		"```go\ncore.Nothing() // `core.Nothing`\n```\n"+
		"`github.com/floodgate-go/floodgate/core.Nothing`, `core.Decision.Remaining`\n")
	found, checked, err := CheckNames(root(t), []*Page{page})
	if err != nil {
		t.Fatal(err)
	}
	wantProblems(t, found, []broken{
		{2, "core.Nothing: package core exports"},
		{3, "core.Config.Nothing"},
		{3, "keyfuncs.Nothing: package keyfuncs exports"},
	})
	if checked != 9 {
		t.Errorf("%d names, not 9", checked)
	}
}
