package archtest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cost is what a program has to take along.
type cost struct {
	requires int // modules in go.mod, without Floodgate's
	sums     int // lines of go.sum
	packages int // packages outside the standard library, without Floodgate's
}

// programs are the programs of the table in docs/reference/dependencies.md: the main
// function, which limits a handler of the framework, and the imports. The comments are the
// lines that are left out to measure the framework alone.
var programs = []struct{ adapter, imports, main string }{
	{"core", ``, `
	_ = core.Must(core.New(core.Config{})) //limit`},
	{"adapters/nethttp", `"net/http"`, `
	var h http.Handler = http.NotFoundHandler()
	h = limit.PerIP(1, time.Second)(h) //limit
	_ = http.ListenAndServe(":0", h)`},
	{"adapters/gin", `"github.com/gin-gonic/gin"`, `
	e := gin.New()
	e.Use(limit.PerIP(1, time.Second)) //limit
	_ = e.Run(":0")`},
	{"adapters/echo", `"github.com/labstack/echo/v4"`, `
	e := echo.New()
	e.Use(limit.PerIP(1, time.Second)) //limit
	_ = e.Start(":0")`},
	{"adapters/echo5", `"github.com/labstack/echo/v5"`, `
	e := echo.New()
	e.Use(limit.PerIP(1, time.Second)) //limit
	_ = e.Start(":0")`},
	{"adapters/fiber", `"github.com/gofiber/fiber/v2"`, `
	a := fiber.New()
	a.Use(limit.PerIP(1, time.Second)) //limit
	_ = a.Listen(":0")`},
	{"adapters/fiber3", `"github.com/gofiber/fiber/v3"`, `
	a := fiber.New()
	a.Use(limit.PerIP(1, time.Second)) //limit
	_ = a.Listen(":0")`},
	{"adapters/grpc", `"google.golang.org/grpc"`, `
	var opts []grpc.ServerOption
	opts = append(opts, limit.PerIP(1, time.Second)...) //limit
	_ = grpc.NewServer(opts...).Serve(nil)`},
	{"adapters/connect", `"context"
"net/http"
"connectrpc.com/connect"
"google.golang.org/protobuf/types/known/emptypb"`, `
	var opts []connect.HandlerOption
	opts = append(opts, connect.WithInterceptors(limit.PerIP(1, time.Second))) //limit
	h := connect.NewUnaryHandler("/s.S/M", func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) { return nil, nil }, opts...)
	_ = http.ListenAndServe(":0", h)`},
}

// source returns a program, with or without Floodgate.
func source(adapter, imports, main string, limited bool) string {
	if limited {
		if adapter == "core" {
			imports += "\n" + `"` + module + `/core"`
		} else {
			imports += "\n" + `"time"` + "\n" + `limit "` + module + "/" + adapter + `"`
		}
	} else {
		main = regexp.MustCompile(`(?m)^.*//limit$`).ReplaceAllString(main, "")
	}
	return "package main\n\nimport (\n" + imports + "\n)\n\nfunc main() {" + main + "\n}\n"
}

// cost measures the consumer.
func (c consumer) cost() (k cost) {
	c.t.Helper()
	var mod struct{ Require []struct{ Path string } }
	if err := json.Unmarshal([]byte(c.run("mod", "edit", "-json")), &mod); err != nil {
		c.t.Fatal(err)
	}
	for _, r := range mod.Require {
		if !ours(r.Path) {
			k.requires++
		}
	}
	k.sums = strings.Count(c.file("go.sum"), "\n")
	for _, path := range strings.Fields(c.run("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")) {
		if !ours(path) && path != "example.com/consumer" {
			k.packages++
		}
	}
	return k
}

func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// costs is the page with the table.
const costs = "../../docs/reference/dependencies.md"

var costRow = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\| (\\d+) \\((\\d+)\\) \\| (\\d+) \\((\\d+)\\) \\| (\\d+) \\((\\d+)\\) \\|")

// What a program has to take along is what the page says, so that it does not grow unnoticed.
func TestWhatAConsumerTakesAlongIsWhatThePageSays(t *testing.T) {
	text, err := os.ReadFile(costs)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, m := range costRow.FindAllStringSubmatch(string(text), -1) {
		said[m[1]] = m[0]
	}
	for _, p := range programs {
		var own []string
		if slices.Contains(ownModules(t), p.adapter) {
			own = append(own, p.adapter)
		}
		with := newConsumer(t, source(p.adapter, p.imports, p.main, true), own...).cost()
		without := newConsumer(t, source(p.adapter, p.imports, p.main, false), own...).cost() // with the same version of the framework
		row := fmt.Sprintf("| `%s` | %d (%d) | %d (%d) | %d (%d) |", p.adapter, with.requires, without.requires, with.sums, without.sums, with.packages, without.packages)
		if said[p.adapter] != row {
			t.Errorf("%s has %s, want %s", costs, said[p.adapter], row)
		}
	}
}
