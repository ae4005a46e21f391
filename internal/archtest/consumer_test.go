package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// consumer is a module of somebody else's that imports these packages.
type consumer struct {
	t   *testing.T
	dir string
}

// newConsumer makes a consumer of the root module and of adapters that are modules of
// their own, which adapters names by their folders.
func newConsumer(t *testing.T, source string, adapters ...string) consumer {
	t.Helper()
	lookAtEverything(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	c := consumer{t, t.TempDir()}
	mod := "module example.com/consumer\n\ngo 1.25.0\n"
	for _, folder := range append([]string{""}, adapters...) {
		path := strings.TrimSuffix(module+"/"+folder, "/")
		mod += "\nrequire " + path + " v0.0.0\n\nreplace " + path + " => " + filepath.Join(root, folder) + "\n"
	}
	c.write("go.mod", mod)
	c.write("main.go", source)
	c.run("mod", "tidy")
	return c
}

// ownModules returns the folders of the adapters and observers that are modules of their own.
func ownModules(t *testing.T) (folders []string) {
	t.Helper()
	for _, parent := range []string{"adapters", "observe"} {
		files, err := filepath.Glob("../../" + parent + "/*/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			folders = append(folders, parent+"/"+filepath.Base(filepath.Dir(file)))
		}
	}
	return folders
}

func (c consumer) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c consumer) run(args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "go", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// modules returns the modules, other than the project's, whose packages are
// compiled into the consumer.
func (c consumer) modules() []string {
	c.t.Helper()
	lines := strings.Fields(c.run("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./..."))
	slices.Sort(lines)
	return slices.DeleteFunc(slices.Compact(lines), func(m string) bool {
		return m == module || strings.HasPrefix(m, module+"/") || m == "example.com/consumer"
	})
}

func (c consumer) file(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	return string(b)
}

func TestAConsumerOfCoreOrHTTPLimitTakesNothingAlong(t *testing.T) {
	for _, path := range []string{"core", "adapters/nethttp"} {
		c := newConsumer(t, "package main\n\nimport _ \""+module+"/"+path+"\"\n\nfunc main() {}\n")
		if got := c.modules(); len(got) != 0 {
			t.Errorf("%s compiles %v", path, got)
		}
		if text := c.file("go.mod"); strings.Count(text, "require") != 1 {
			t.Errorf("%s: go.mod has third-party lines:\n%s", path, text)
		}
		if sum := c.file("go.sum"); sum != "" {
			t.Errorf("%s: go.sum has lines:\n%s", path, sum)
		}
	}
}

// A method that is found by a name which is no constant makes the linker keep every exported
// method of the program. That costs each program that uses us 1.6 MB or more.
func TestNothingOfOursKeepsTheLinkerFromDroppingMethods(t *testing.T) {
	for _, p := range programs {
		if p.adapter != "adapters/nethttp" {
			continue
		}
		linked := newConsumer(t, source(p.adapter, p.imports, p.main, true)).run("build", "-ldflags=-dumpdep", "-o", "program", ".")
		if !strings.Contains(linked, module+"/core.New -> ") {
			t.Fatalf("the linker says nothing about core.New: %.500s", linked)
		}
		for line := range strings.Lines(linked) {
			if strings.Contains(line, "<ReflectMethod>") && strings.Contains(line, module+"/") {
				t.Error(line)
			}
		}
	}
}

// Who imports one adapter or one store compiles no other framework, and no other store's client.
func TestAConsumerTakesOneClientAlong(t *testing.T) {
	heavy := map[string]string{ // whose is it
		"github.com/gin-gonic/gin":                 "adapters/gin",
		"github.com/labstack/echo/v4":              "adapters/echo",
		"github.com/labstack/echo/v5":              "adapters/echo5",
		"github.com/gofiber/fiber/v2":              "adapters/fiber",
		"github.com/gofiber/fiber/v3":              "adapters/fiber3",
		"google.golang.org/grpc":                   "adapters/grpc",
		"connectrpc.com/connect":                   "adapters/connect",
		"go.opentelemetry.io/otel":                 "observe/otel",
		"github.com/prometheus/client_golang":      "observe/prometheus",
		"google.golang.org/protobuf":               "adapters/grpc adapters/connect adapters/gin observe/prometheus",
		"github.com/redis/go-redis/v9":             "stores/redis stores/synced/redisbackend policy",
		"github.com/bradfitz/gomemcache":           "stores/memcached policy",
		"github.com/jackc/pgx/v5":                  "stores/synced/pgbackend",
		"golang.org/x/text":                        "login adapters/gin adapters/echo adapters/fiber3 stores/synced/pgbackend adapters/grpc",
		"pgregory.net/rapid":                       "",
		"go.uber.org/goleak":                       "",
		"github.com/goccy/go-yaml":                 "policy",
		"github.com/expr-lang/expr":                "policy",
		"github.com/spf13/cobra":                   "",
		"github.com/santhosh-tekuri/jsonschema/v6": "",
		"github.com/valyala/fasthttp":              "adapters/fiber adapters/fiber3",
		"github.com/go-playground/validator/v10":   "adapters/gin",
	}
	for _, path := range []string{
		"adapters/gin", "adapters/echo", "adapters/fiber", "stores/redis", "stores/memcached", "stores/resilient", "stores/denycache",
		"adapters/echo5", "adapters/fiber3", "adapters/grpc", "adapters/connect",
		"observe", "observe/slog", "observe/otel", "observe/prometheus",
		"stores/synced", "stores/synced/redisbackend", "stores/synced/pgbackend", "login", "keyfuncs", "policy",
	} {
		var own []string
		if slices.Contains(ownModules(t), path) {
			own = append(own, path)
		}
		c := newConsumer(t, "package main\n\nimport _ \""+module+"/"+path+"\"\n\nfunc main() {}\n", own...)
		for _, m := range c.modules() {
			if owners, known := heavy[m]; known && !slices.Contains(strings.Fields(owners), path) {
				t.Errorf("who imports %s compiles %s", path, m)
			}
		}
	}
}
