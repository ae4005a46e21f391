package login_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/login"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// deployEnv has the server and the account's limit of a process of
// TestARollingDeployUnderAttack.
const deployEnv = "FLOODGATE_LOGIN_DEPLOY"

// The two versions differ in the window of the account's limit.
func accountFailures(version string) core.Limit {
	if version == "old" {
		return core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow}
	}
	return core.Limit{Quota: 10, Window: 2 * time.Hour, Algorithm: core.FixedWindow}
}

// TestDeployedProcess is a process of TestARollingDeployUnderAttack: a guard under
// attack by strangers until its standard input ends. It tells how many guesses
// have reached the handler.
func TestDeployedProcess(t *testing.T) {
	kind, rest, found := strings.Cut(os.Getenv(deployEnv), " ")
	if !found {
		t.Skip("is run by TestARollingDeployUnderAttack")
	}
	addr, version, _ := strings.Cut(rest, " ")
	var store core.Store
	switch kind {
	case "redis":
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close() //nolint:errcheck // the process ends
		store = redisstore.New(client, redisstore.Timeout(20*time.Second), redisstore.WithoutDenialCache())
	case "memcached":
		m, err := memcachedstore.New([]string{addr}, memcachedstore.Timeout(20*time.Second), memcachedstore.WithoutDenialCache())
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close() //nolint:errcheck // the process ends
		store = m
	}
	guard, err := login.NewGuard(login.Config{
		Field: "username", Store: store, ForgetAddresses: true, AccountFailures: accountFailures(version),
		Resilience: resilient.Config{Meanwhile: resilient.Closed, Timeout: 20 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close() //nolint:errcheck // the process ends
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	fmt.Println("ready")
	guesses, reached := 0, 0
	for {
		select {
		case <-stop:
			fmt.Println("reached", reached, "of", guesses)
			return
		default:
		}
		r := form(fmt.Sprintf("10.%d.%d.%d", rand.N(256), rand.N(256), rand.N(256)), "alice")
		d := guard.Check(r)
		guesses++
		if !d.Allowed {
			continue
		}
		reached++
		guard.Settle(r, d, core.Outcome{Status: http.StatusUnauthorized})
	}
}

// deployed is a process at work.
type deployed struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func deploy(t *testing.T, server, version string) *deployed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDeployedProcess$", "-test.v")
	cmd.Env = append(os.Environ(), deployEnv+"="+server+" "+version)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &deployed{cmd, stdin, bufio.NewScanner(stdout)}
	d.line(t, "ready")
	return d
}

// line reads up to the line that begins so, and returns its words.
func (d *deployed) line(t *testing.T, begin string) []string {
	t.Helper()
	for d.lines.Scan() {
		if words := strings.Fields(d.lines.Text()); len(words) > 0 && words[0] == begin {
			return words
		}
	}
	t.Fatalf("a process ended without %q", begin)
	return nil
}

// stop ends the process, and returns how many of its guesses have reached the
// handler.
func (d *deployed) stop(t *testing.T) (reached, guesses int) {
	t.Helper()
	_ = d.stdin.Close()
	words := d.line(t, "reached")
	reached, _ = strconv.Atoi(words[1])
	guesses, _ = strconv.Atoi(words[3])
	_, _ = io.Copy(io.Discard, readerOf(d.lines))
	if err := d.cmd.Wait(); err != nil {
		t.Error(err)
	}
	return reached, guesses
}

// readerOf reads what is left of a scanner.
func readerOf(s *bufio.Scanner) io.Reader {
	return readFunc(func([]byte) (int, error) {
		if s.Scan() {
			return 0, nil
		}
		return 0, io.EOF
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// Four processes on one store are replaced, one after the other, by ones whose
// limit has another window, while all are under attack. Each version admits its
// own quota, and so the account never sees more guesses than the larger of both
// promises.
func TestARollingDeployUnderAttack(t *testing.T) {
	for _, kind := range []string{"redis", "memcached"} {
		t.Run(kind, func(t *testing.T) {
			var server string
			if kind == "redis" {
				server = "redis " + redistest.Start(t).Addr
			} else {
				server = "memcached " + memcachedtest.Start(t).Addr
			}
			running := make([]*deployed, 4)
			for i := range running {
				running[i] = deploy(t, server, "old")
			}
			reached, guesses := map[string]int{}, 0
			stop := func(i int, version string) {
				r, g := running[i].stop(t)
				reached[version] += r
				guesses += g
			}
			for i := range running {
				next := deploy(t, server, "new")
				stop(i, "old")
				running[i] = next
			}
			for i := range running {
				stop(i, "new")
			}
			if reached["old"] != 5 || reached["new"] != 10 {
				t.Errorf("%v of %d guesses have reached the handler, want 5 by the old version and 10 by the new one", reached, guesses)
			}
			if promise := accountFailures("new").Guarantees().WorstCase; int64(reached["old"]+reached["new"]) > promise {
				t.Errorf("%v of %d guesses have reached the handler, at most %d are promised", reached, guesses, promise)
			}
			t.Logf("%d guesses", guesses)
		})
	}
}
