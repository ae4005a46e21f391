package doctest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/internal/leftout"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// The documents of this tree, in which every block, link and anchor is tested.
var documents = []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs", "examples"}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func root(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// lookAtEverything makes go test see that the result depends on all files of the
// project, which other processes read: else it would give a cached one.
func lookAtEverything(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !d.IsDir() && !strings.HasSuffix(path, "_test.go"):
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// existing leaves out what is not there yet.
func existing(root string, names []string) (found []string) {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			found = append(found, name)
		}
	}
	return found
}

func report(t *testing.T, problems []Problem) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// servers starts what blocks need, and says which blocks are left out.
func servers(t *testing.T, pages []*Page) map[string][2]string {
	needed := map[string]bool{}
	for _, p := range pages {
		for _, b := range p.Blocks {
			for name := range strings.FieldsSeq(b.Directives["needs"]) {
				needed[name] = true
			}
		}
	}
	running := map[string][2]string{}
	for name := range needed {
		program, known := map[string]string{"redis": "redis-server", "memcached": "memcached"}[name]
		if !known {
			t.Errorf("a block needs %q, which the test cannot start", name)
			continue
		}
		if _, err := exec.LookPath(program); err != nil {
			t.Run(name, func(t *testing.T) { leftout.Skip(t, program+" is not installed: apt-get install "+program) })
			continue
		}
		if name == "redis" {
			running[name] = [2]string{"127.0.0.1:6379", redistest.Start(t).Addr}
		} else {
			running[name] = [2]string{"127.0.0.1:11211", memcachedtest.Start(t).Addr}
		}
	}
	return running
}

// The README names the two commands of a clone before its first heading, and is short.
func TestTheReadmeOpensWithTheCommandsOfAClone(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	opening, _, _ := strings.Cut(string(text), "\n## ")
	for _, want := range []string{"`go run ./examples/login/nethttp`", "`make test`"} {
		if !strings.Contains(opening, want) {
			t.Errorf("the first lines do not name %s", want)
		}
	}
	if n := len(strings.Fields(string(text))); n > 700 {
		t.Errorf("%d words, at most 700", n)
	}
}

func TestDocuments(t *testing.T) {
	root := root(t)
	lookAtEverything(t, root)
	pages, problems, err := ReadPages(root, existing(root, documents)...)
	if err != nil {
		t.Fatal(err)
	}
	report(t, problems)
	report(t, CheckLinks(root, pages))
	// README.md aligns some comments by hand.
	report(t, slices.DeleteFunc(CheckFormat(pages), func(p Problem) bool { return p.File == "README.md" }))
	found, err := CheckShell(root, pages)
	if err != nil {
		t.Fatal(err)
	}
	report(t, found)
	found, policies := CheckPolicies(pages)
	report(t, found)

	w := &Workspace{Root: root, Dir: t.TempDir(), Servers: servers(t, pages)}
	found, err = w.Add(pages)
	if err != nil {
		t.Fatal(err)
	}
	report(t, found)
	t.Logf("%d pages, %d programs, %d fragments, %d test files, %d policy files",
		len(pages), len(w.programs), len(w.places)-len(w.programs)-len(w.tests), len(w.tests), policies)
	if found = w.Build(t.Context()); len(found) > 0 {
		report(t, found)
		return
	}
	report(t, w.RunPrograms(t.Context()))
	report(t, w.RunTests(t.Context()))
	report(t, w.RunConsoles(t.Context(), pages))
}
