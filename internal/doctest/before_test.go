package doctest

import (
	"regexp"
	"testing"

	"github.com/floodgate-go/floodgate/internal/leftout"
)

// unreachable matches what the go command says if it cannot fetch a module.
var unreachable = regexp.MustCompile(`dial tcp|lookup .* on|module lookup disabled|i/o timeout|connection refused`)

// Programs that need more than the root module are built with the requirements of
// bench, run, and must print what the pages have. TestDocuments runs the others.
func TestProgramsOfOtherLibraries(t *testing.T) {
	root := root(t)
	lookAtEverything(t, root)
	pages, _, err := ReadPages(root, existing(root, documents)...)
	if err != nil {
		t.Fatal(err)
	}
	report(t, CheckBefore(pages))
	w := &Workspace{Root: root, Dir: t.TempDir(), Module: "bench", Servers: servers(t, nil)}
	found, err := w.Add(pages)
	if err != nil {
		t.Fatal(err)
	}
	report(t, found)
	t.Logf("%d programs", len(w.programs))
	if len(w.programs) == 0 {
		t.Fatal("no document has a program with the comment before")
	}
	if err := w.Fetch(t.Context()); err != nil && unreachable.MatchString(err.Error()) {
		leftout.Skip(t, "the modules of bench are not here and cannot be fetched: cd bench && go mod download")
	}
	if found = w.Build(t.Context()); len(found) > 0 {
		report(t, found)
		return
	}
	report(t, w.RunPrograms(t.Context()))
}
