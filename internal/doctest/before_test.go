package doctest

import (
	"regexp"
	"testing"

	"github.com/floodgate-go/floodgate/internal/leftout"
)

// unreachable matches what the go command says if it cannot fetch a module.
var unreachable = regexp.MustCompile(`dial tcp|lookup .* on|module lookup disabled|i/o timeout|connection refused`)

// The pages about software whose programs are not in Go.
var notGo = map[string]bool{
	"docs/coming-from/kong.md":           true,
	"docs/coming-from/mulesoft.md":       true,
	"docs/coming-from/ratelimitcache.md": true,
}

// The programs of other libraries are built with the requirements of bench, run,
// and must print what the pages have. TestDocuments runs ours.
func TestProgramsOfOtherLibraries(t *testing.T) {
	root := root(t)
	lookAtEverything(t, root)
	pages, _, err := ReadPages(root, existing(root, documents)...)
	if err != nil {
		t.Fatal(err)
	}
	report(t, CheckBefore(pages, notGo))
	var needing []*Page
	for _, p := range pages {
		if p.comes() {
			needing = append(needing, p)
		}
	}
	w := &Workspace{Root: root, Dir: t.TempDir(), Module: "bench", Servers: servers(t, needing)}
	found, err := w.Add(pages)
	if err != nil {
		t.Fatal(err)
	}
	report(t, found)
	t.Logf("%d pages, %d programs", len(needing), len(w.programs))
	if len(w.programs) == 0 {
		t.Fatal("no document has a program of another library")
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

func TestBrokenBefore(t *testing.T) {
	page := func(name, text string) *Page {
		p, problems := parsePage("docs/coming-from/"+name, text)
		report(t, problems)
		return p
	}
	const (
		comment = "<!-- before -->\n"
		program = "```go\npackage main\n\nfunc main() { println(1) }\n```\n\n"
		one     = "```text\n1\n```\n\n"
		two     = "```text\n2\n```\n\n"
	)
	for _, c := range []struct {
		name, text string
		want       []broken
	}{
		{"same.md", comment + program + one + program + one, nil},
		{"several.md", comment + program + two + comment + program + one + program + one, nil},
		{"other.md", comment + program + one + program + two, []broken{{1, "no program of ours prints what"}}},
		{"alone.md", comment + program + one, []broken{{1, "no program of ours prints what"}}},
		{"silent.md", comment + program + program + one, []broken{{3, "does not have what the program prints"}, {1, "no program of the other library"}}},
		{"ours.md", program + one, []broken{{1, "no program of the other library"}}},
		{"fragment.md", comment + "```go\nx()\n```\n" + comment + program + one + program + one, []broken{{3, "is for programs"}}},
		{"kong.md", program + one, nil},
		{"mulesoft.md", "Text.\n", []broken{{1, "has no program of ours"}}},
		{"README.md", "Text.\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantProblems(t, CheckBefore([]*Page{page(c.name, c.text)}, notGo), c.want)
		})
	}
}
