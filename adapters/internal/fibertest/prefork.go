//go:build unix

package fibertest

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// sharedMemory is a Memory that says that other processes count in it too.
type sharedMemory struct{ *core.Memory }

func (s sharedMemory) Guarantees() core.Guarantees {
	g := s.Memory.Guarantees()
	g.Shared = true
	return g
}

// Main runs the tests, or an application in a process of its own and in those that Prefork makes of
// it. listen serves requests to / behind the limiter with Prefork, and answers with the process's
// number as JSON.
func Main(m *testing.M, listen func(addr string, limiter *core.Limiter) error) {
	processtest.Main(m, func() {
		addr, store := os.Args[1], os.Args[2]
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)).With("pid", os.Getpid()))
		c := core.Config{Name: "prefork", Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1000)}}}}
		if store == "shared" {
			c.Store = sharedMemory{core.Must(core.NewMemory(core.MemoryConfig{}))}
		}
		slog.Error("Listen has returned", "err", listen(addr, core.Must(core.New(c)))) // a test kills it before that
	})
}

// Prefork runs the tests of Prefork. TestMain of the test's package has called Main.
func Prefork(t *testing.T) {
	t.Run("a child that counts for itself logs one line", countsForItself)
	t.Run("a child with a shared store logs nothing", logsNothing)
}

// prefork starts the application, asks it until two children have answered three
// times each, and returns what the children have logged.
func prefork(t *testing.T, store string) string {
	t.Helper()
	addr := processtest.FreeAddr(t, 0)
	cmd := processtest.Command(addr, store)
	cmd.Env = append(cmd.Env, "GOMAXPROCS=2")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	logged := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(bufio.NewReader(out)) // it ends when the last child has
		logged <- string(text)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	answers := map[string]int{}
	enough := func() bool {
		n := 0
		for _, times := range answers {
			if times >= 3 {
				n++
			}
		}
		return n >= 2
	}
	for until := time.Now().Add(time.Minute); !enough() && time.Now().Before(until); {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			continue // the children have not begun to listen
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", resp.Status, body)
		}
		answers[string(body)]++
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	text := <-logged
	_ = cmd.Wait()
	if !enough() {
		t.Fatalf("two children have not answered: %v\n%s", answers, text)
	}
	return text
}

func countsForItself(t *testing.T) {
	lines := regexp.MustCompile(`level=WARN.*Prefork.*pid=([0-9]+).*limiter=prefork`).FindAllStringSubmatch(prefork(t, "own"), -1)
	pids := map[string]bool{}
	for _, l := range lines {
		pids[l[1]] = true
	}
	if len(lines) < 2 || len(pids) != len(lines) {
		t.Errorf("%d lines of %d processes: want one of each child\n%q", len(lines), len(pids), lines)
	}
}

func logsNothing(t *testing.T) {
	if text := prefork(t, "shared"); strings.Contains(text, "Prefork") {
		t.Errorf("%s", text)
	}
}
