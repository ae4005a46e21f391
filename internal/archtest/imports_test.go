// Package archtest has the tests of the project's architecture: who imports
// whom, and what a consumer has to take along.
package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/floodgate-go/floodgate"

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	lookAtEverything(t)
	return listIn(t, ".", args...)
}

// listIn is list in a folder of the project.
func listIn(t *testing.T, folder string, args ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports,Deps,Standard"}, args...)...)
	cmd.Dir = filepath.Join("../..", folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// lookAtEverything makes go test see that the result depends on all files of
// the project, which another process reads: else it would give a cached one.
func lookAtEverything(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") || strings.HasPrefix(d.Name(), "go."):
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// arrows says, for the packages below a folder, which folders of the project
// they may import besides their own.
var arrows = []struct {
	from string
	to   []string
}{
	{module, nil},
	{"core/storetest", []string{"core"}},
	{"core/internal/memtable", []string{"internal/meter"}},
	{"core", []string{"core/internal", "internal/meter", "internal/names", "internal/requestlog"}},
	{"keyfuncs", []string{"core", "internal/escapes", "internal/requestlog"}},
	{"floodgatetest", []string{"core", "internal/httprequest"}},
	{"inflight", []string{"core"}},
	{"adapters/adaptertest", []string{"core", "inflight", "keyfuncs", "floodgatetest", "internal/hooktest", "internal/racetest", "internal/usernames"}},
	{"adapters/internal/fibertest", []string{"core", "keyfuncs", "internal/hooktest", "internal/processtest"}},
	{"httpclient", []string{"core", "internal/httprequest", "internal/nilcheck"}},
	{"adapters/internal/rpctest", []string{"core", "inflight", "keyfuncs", "floodgatetest", "adapters/internal", "internal"}},
	{"adapters/grpc", []string{"core", "keyfuncs", "adapters/internal", "internal/requestlog"}},
	{"adapters/connect", []string{"core", "keyfuncs", "adapters/internal", "adapters/connect/internal", "internal/requestlog"}},
	{"adapters", []string{"core", "keyfuncs", "adapters/internal", "internal/httprequest", "internal/nilcheck"}},
	{"stores", []string{"core", "inflight", "stores", "internal/meter", "internal/names", "internal/nilcheck"}},
	{"login", []string{"core", "inflight", "internal/httprequest", "internal/requestlog", "internal/usernames", "keyfuncs", "stores", "internal/nilcheck"}},
	{"live", []string{"core", "live/internal", "internal/stripes", "internal/nilcheck"}},
	{"observe/slog", []string{"core"}},
	{"observe", []string{"core", "observe", "internal/stripes"}},
	{"policy/internal/words", []string{"core"}},
	{"policy/internal/paths", []string{"core", "internal/escapes"}},
	{"policy/internal/expression", []string{"core", "internal/requestlog", "keyfuncs", "policy/internal/words"}},
	{"policy/internal/file", []string{"core", "inflight", "keyfuncs", "stores", "policy/internal", "internal/boundedyaml", "internal/regularfile"}},
	{"policy", []string{"core", "inflight", "keyfuncs", "stores", "policy/internal", "internal/regularfile", "internal/nilcheck"}},
	{"examples/login/site/sitetest", []string{"core", "examples", "internal"}},
	// It asks a key function about requests that nobody has sent.
	{"examples/proxy", []string{"core", "keyfuncs", "floodgatetest"}},
	{"examples", []string{"core", "inflight", "keyfuncs", "stores", "adapters", "httpclient", "login", "policy", "live", "observe", "examples"}},
	{"cmd/floodgate/internal/accesslog", nil},
	{"cmd/floodgate/internal/replay", []string{"core", "policy", "cmd/floodgate/internal"}},
	{"cmd/floodgate/internal/report", []string{"cmd/floodgate/internal"}},
	{"cmd/floodgate/internal/mulesoft", []string{"core", "policy", "internal/boundedyaml"}},
	{"cmd", []string{"core", "stores", "policy", "cmd/floodgate/internal", "internal/httprequest"}},
	{"internal/readers", []string{"core", "keyfuncs", "login"}},
	{"internal/pathtest", []string{"core", "policy", "internal"}},
	{"internal/boundedyaml", nil},
	{"internal/escapes", nil},
	{"internal/regularfile", nil},
	{"internal/httprequest", []string{"core"}},
	{"internal/usernames", []string{"core"}},
	{"internal/meter", nil},
	{"internal/stripes", nil},
	{"internal/names", nil},
	{"internal/nilcheck", nil},
	{"internal/requestlog", nil},
	{"internal", []string{"core", "internal"}},
}

func TestImportsPointDownwards(t *testing.T) {
	all := list(t, "./...")
	for _, folder := range ownModules(t) {
		all = append(all, listIn(t, folder, "./...")...)
	}
	for _, p := range all {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		known := false
		for _, a := range arrows {
			if path != a.from && !strings.HasPrefix(path, a.from+"/") {
				continue
			}
			for _, imported := range p.Imports {
				to, ours := strings.CutPrefix(imported, module+"/")
				allowed := to == path || slices.ContainsFunc(a.to, func(folder string) bool {
					return to == folder || strings.HasPrefix(to, folder+"/") && folder != "core"
				})
				if ours && !allowed {
					t.Errorf("%s imports %s", path, to)
				}
			}
			known = true
			break
		}
		if !known {
			t.Errorf("%s is in a folder that no arrow is known for", path)
		}
	}
}

// coreItself is core and the packages that it is made of.
var coreItself = []string{module + "/core", module + "/core/internal/memtable", module + "/internal/meter", module + "/internal/names", module + "/internal/requestlog"}

func TestCoreAndKeyfuncsImportTheStandardLibraryOnly(t *testing.T) {
	ours := append([]string{module + "/keyfuncs", module + "/internal/escapes"}, coreItself...)
	standard := map[string]bool{"unsafe": true, "C": true}
	for _, p := range list(t, "-deps", "./core", "./keyfuncs") {
		standard[p.ImportPath] = p.Standard
		if !p.Standard && !slices.Contains(ours, p.ImportPath) {
			t.Errorf("core or keyfuncs depends on %s", p.ImportPath)
		}
	}
	if _, found := standard["net/http"]; found {
		t.Error("core depends on net/http: it has to serve programs without it")
	}
}

// An adapter's consumer compiles no other framework and no store client.
func TestAdaptersDependOnTheirOwnFrameworkOnly(t *testing.T) {
	frameworks := map[string]string{
		"adapters/gin":    "github.com/gin-gonic/gin",
		"adapters/echo":   "github.com/labstack/echo/v4",
		"adapters/fiber":  "github.com/gofiber/fiber/v2",
		"adapters/echo5":  "github.com/labstack/echo/v5",
		"adapters/fiber3": "github.com/gofiber/fiber/v3",

		"adapters/grpc":    "google.golang.org/grpc",
		"adapters/connect": "connectrpc.com/connect",
	}
	for path := range frameworks {
		for _, p := range listIn(t, path, "-deps", ".") {
			for other, framework := range frameworks {
				if other != path && strings.HasPrefix(p.ImportPath, framework) {
					t.Errorf("%s depends on %s", path, p.ImportPath)
				}
			}
		}
	}
	for _, p := range list(t, "./adapters/...") {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		if _, ok := frameworks[path]; !ok && path != "adapters/nethttp" && path != "adapters/adaptertest" && !strings.HasPrefix(path, "adapters/internal/") {
			t.Errorf("%s is not known here", path)
		}
	}
	for _, p := range list(t, "-deps", "./adapters/nethttp") {
		if !p.Standard && !strings.HasPrefix(p.ImportPath, module+"/") {
			t.Errorf("adapters/nethttp depends on %s", p.ImportPath)
		}
	}
}
