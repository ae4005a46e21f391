//go:build release

package releasetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module  = "github.com/floodgate-go/floodgate"
	version = "v0.987.0" // no release has it
)

// programs has a program for each module that is published, by the module's folder.
var programs = map[string]string{
	"": `import (
	"fmt"
	"net/http"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
)

func main() { fmt.Println(httplimit.PerIP(100, time.Minute)(http.NotFoundHandler()) != nil) }`,
	"adapters/echo5": `import (
	"fmt"
	"time"

	"github.com/labstack/echo/v5"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
)

func main() {
	e := echo.New()
	e.Use(echo5limit.PerIP(100, time.Minute))
	fmt.Println(e != nil)
}`,
	"adapters/fiber3": `import (
	"fmt"
	"time"

	"github.com/gofiber/fiber/v3"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
)

func main() {
	app := fiber.New()
	app.Use(fiber3limit.PerIP(100, time.Minute))
	fmt.Println(app != nil)
}`,
	"adapters/grpc": `import (
	"fmt"
	"time"

	"google.golang.org/grpc"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
)

func main() { fmt.Println(grpc.NewServer(grpclimit.PerIP(100, time.Minute)...) != nil) }`,
	"adapters/connect": `import (
	"fmt"
	"time"

	"connectrpc.com/connect"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
)

func main() { fmt.Println(connect.WithInterceptors(connectlimit.PerIP(100, time.Minute)) != nil) }`,
	"observe/otel": `import (
	"fmt"

	otelobserve "github.com/floodgate-go/floodgate/observe/otel"
)

func main() { fmt.Printf("%t\n", otelobserve.New != nil) }`,
	"observe/prometheus": `import (
	"fmt"

	promobserve "github.com/floodgate-go/floodgate/observe/prometheus"
)

func main() { fmt.Printf("%t\n", promobserve.New != nil) }`,
}

// The tags that CONTRIBUTING.md describes can be fetched by consumers: no published module needs
// a replace. The programs get Floodgate from a Git repository, as from GitHub, and the modules
// of others from the module cache of the machine.
func TestRelease(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cache := strings.TrimSpace(run(t, root, nil, "go", "env", "GOMODCACHE"))
	repository := t.TempDir()
	folders := release(t, root, repository)

	env := []string{
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOPROXY=file://" + filepath.ToSlash(cache) + "/cache/download", "GONOPROXY=" + module, "GOPRIVATE=", "GONOSUMDB=", "GOSUMDB=off",
		"GIT_ALLOW_PROTOCOL=file", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://" + repository + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + module,
	}
	for _, folder := range folders {
		path := strings.TrimSuffix(module+"/"+folder, "/")
		source, found := programs[folder]
		if !found {
			t.Errorf("there is no program for the module %s", path)
			continue
		}
		consumer := t.TempDir()
		write(t, consumer, "go.mod", "module example.com/consumer\n\ngo 1.25.0\n")
		run(t, consumer, env, "go", "get", path+"@"+version)
		write(t, consumer, "main.go", "package main\n\n"+source+"\n")
		if out := run(t, consumer, env, "go", "run", "."); !strings.HasSuffix(out, "true\n") {
			t.Errorf("the program of %s prints %q", path, out)
		}
		if list := run(t, consumer, env, "go", "list", "-m", path, module); !strings.HasPrefix(list, path+" "+version+"\n") {
			t.Errorf("the consumer of %s gets\n%s", path, list)
		}
	}
	run(t, t.TempDir(), append(env, "GOBIN="+t.TempDir(), "GOFLAGS=-modcacherw -trimpath"), "go", "install", module+"/cmd/floodgate@"+version)
}

// release copies the working tree into a Git repository and tags it. It returns the folders of the
// modules that are published, the root's being "".
func release(t *testing.T, root, repository string) []string {
	t.Helper()
	folders := []string{""}
	for name := range strings.SplitSeq(strings.TrimSuffix(run(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		from, to := filepath.Join(root, name), filepath.Join(repository, name)
		info, err := os.Lstat(from)
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if !info.Mode().IsRegular() {
			t.Fatalf("%s: a module cannot have it: %v", name, info.Mode())
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Dir(to), filepath.Base(to), string(text))
		folder, isModule := strings.CutSuffix(name, "/go.mod")
		if parent, _, _ := strings.Cut(folder, "/"); isModule && strings.Count(folder, "/") == 1 && (parent == "adapters" || parent == "observe") {
			folders = append(folders, folder)
		}
	}
	git := func(args ...string) {
		t.Helper()
		run(t, repository, nil, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgSign=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
	}
	git("init", "--quiet")
	git("add", "--force", ".")
	git("commit", "--quiet", "--message", "root")
	git("tag", version)
	for _, folder := range folders[1:] {
		run(t, filepath.Join(repository, folder), nil, "go", "mod", "edit", fmt.Sprintf("-require=%s@%s", module, version))
	}
	git("commit", "--quiet", "--all", "--message", "adapters")
	for _, folder := range folders[1:] {
		git("tag", folder+"/"+version)
	}
	return folders
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a command and returns what it prints.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, failure.String())
	}
	return string(out)
}
