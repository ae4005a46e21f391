package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// serviceOf returns the limiter of a service that counts by a policy file.
func serviceOf(t *testing.T, server *redistest.Server, path string) *core.Limiter {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	set, err := policy.Load(path, policy.WithStore(redisstore.New(client, redisstore.Timeout(5*time.Second), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(set.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	return set.Limiter()
}

func take(t *testing.T, l *core.Limiter, n int64, key string) {
	t.Helper()
	if _, err := l.Take(t.Context(), n, core.Hit{Rule: "api", Key: key}); err != nil {
		t.Fatal(err)
	}
}

// following runs top with an interval of two seconds. between runs before each list
// but the first, with the output so far; if it returns false, top is interrupted.
func following(t *testing.T, server *redistest.Server, path string, terminal bool, between func(out string) bool) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var b bytes.Buffer
	follow := &topping{
		service: service{url: "redis://" + server.Addr, timeout: time.Second}, top: 1, known: []string{"ann"}, interval: 2 * time.Second,
		out: &b, terminal: terminal, now: stepping(2 * time.Second),
		after: func(d time.Duration) <-chan time.Time {
			if d != 2*time.Second {
				t.Errorf("top waits for %v", d)
			}
			passed := make(chan time.Time, 1)
			if between(b.String()) {
				passed <- time.Time{}
			} else {
				cancel()
			}
			return passed
		},
	}
	err = follow.open(path, &b, func(set *policy.Set) error { return follow.run(ctx, set) })
	return b.String(), err
}

func TestTopFollows(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 10/366d fixed_window}]")
	api := serviceOf(t, server, path)
	take(t, api, 1, "ann")
	spaces, reset := regexp.MustCompile(` +`), regexp.MustCompile(`\d+h\d+m\S+`)
	for i, mark := range [][2]string{{"", "\n"}, {clearScreen, ""}} {
		lists := 0
		out, err := following(t, server, path, i == 1, func(string) bool {
			if lists++; lists < 3 {
				take(t, api, 1, "ann")
			}
			return lists < 3
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ends with %v", err)
		}
		want, at := "", stepping(2*time.Second)
		for j := range 3 {
			used := 1 + 2*i + j
			want += fmt.Sprintf("%s%s\n1 counter\npolicy rule limit used remaining reset in key\napi api 10 per 366d (fixed_window) %d %d (time) ann\n%s", mark[0], at().Format(time.RFC3339), used, 10-used, mark[1])
		}
		if got := spaces.ReplaceAllString(reset.ReplaceAllString(out, "(time)"), " "); got != want {
			t.Errorf("prints\n%q\nwant\n%q", got, want)
		}
	}
}

// A server that goes away does not end top, and one that was never there does.
func TestTopWaitsForAServerThatIsGone(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 10/h}]")
	lists := 0
	out, err := following(t, server, path, false, func(string) bool {
		if lists++; lists == 1 {
			server.Stop()
		}
		return lists < 3
	})
	if !errors.Is(err, context.Canceled) || lists != 3 || strings.Count(out, "0 counters") != 1 || strings.Count(out, "\nredis: ") != 2 {
		t.Errorf("after %d lists: %v\n%s", lists, err, out)
	}
	out, err = following(t, server, path, false, func(string) bool { t.Error("top waits"); return false })
	if err == nil || errors.Is(err, context.Canceled) || out != "" {
		t.Errorf("without a server: %v, prints %q", err, out)
	}
}

// A limit that no hit can use any more, such as one whose quota has become 0, and a
// limit of which nothing is used are not listed.
func TestTopListsWhatIsUsed(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: [10/h, 9/1ms]}]")
	api := serviceOf(t, server, path)
	take(t, api, 3, "ann")
	processtest.WaitFor(t, "the millisecond to be over on the server", func() bool {
		d, err := api.Peek(t.Context(), 0, core.Hit{Rule: "api", Key: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		used := 0
		for s := range d.Limits() {
			used += int(s.Limit.Quota - s.Remaining)
		}
		return used == 3
	})
	for text, want := range map[string]string{
		"policies: [{name: api, key: ip, limits: [10/h, 9/1ms]}]": "10 per 1h",
		"policies: [{name: api, key: ip, limits: [0/h, 9/1ms]}]":  "",
	} {
		out, _ := expect(t, exitFine, "", "top", file(t, "limits.yaml", text), "--store", "redis://"+server.Addr, "--top", "1")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if lines[0] != "1 counter" || len(lines) != 2 && want == "" || want != "" && (len(lines) != 3 || !strings.Contains(lines[2], want)) || strings.Contains(out, "NaN") {
			t.Errorf("%s:\n%s", text, out)
		}
	}
}

// What is used of a burst is the burst less what remains.
func TestTopOfABurst(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 10/366d token_bucket burst=40}]")
	take(t, serviceOf(t, server, path), 3, "ann")
	out, _ := expect(t, exitFine, "", "top", path, "--store", "redis://"+server.Addr)
	if columns := strings.Join(strings.Fields(out), " "); !strings.Contains(columns, "(token_bucket, burst 40) 3 37 ") {
		t.Errorf("want 3 used and 37 remaining:\n%s", out)
	}
}

func TestIntervals(t *testing.T) {
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 10/h}]")
	for _, wrong := range []string{"0s", "-2s", "99ms"} {
		if _, errs := expect(t, exitUsage, "", "top", path, "--store", "redis://127.0.0.1:1", "--interval", wrong); !strings.HasPrefix(errs, "usage: --interval: "+wrong+": want 100ms or more") {
			t.Errorf("%s: %s", wrong, errs)
		}
	}
	// An interval that is long enough gets as far as the server that is not there.
	if _, errs := expect(t, exitFailed, "", "top", path, "--store", "redis://127.0.0.1:1", "--interval", "100ms"); !strings.Contains(errs, "127.0.0.1:1") {
		t.Errorf("100ms: %s", errs)
	}
}

func TestWhatIsATerminal(t *testing.T) {
	f, err := os.Open(file(t, "plain", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()                  //nolint:errcheck // it was read only
	null, err := os.Open(os.DevNull) // a device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // it was read only
	if isTerminal(&bytes.Buffer{}) || isTerminal(f) || !isTerminal(null) {
		t.Error("a buffer or a file is taken for a terminal, or a device is not")
	}
}

// failing is a hook of a Redis client that fails each command.
type failing struct{ err error }

func (f failing) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f failing) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return f.err }
}
func (f failing) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return f.err }
}

// top prints an error of the server without control characters, which would clear the
// screen of a terminal.
func TestTopEscapesErrorsOfTheServer(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close() //nolint:errcheck // the test is over
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	lists := 0
	follow := &topping{
		service: service{Store: redisstore.New(client, redisstore.Timeout(5*time.Second))}, top: 1, interval: time.Second, out: &out, now: time.Now,
		after: func(time.Duration) <-chan time.Time {
			passed := make(chan time.Time, 1)
			if lists++; lists == 1 {
				client.AddHook(failing{errors.New("\x1b[2Jgone")})
				passed <- time.Time{}
			} else {
				cancel()
			}
			return passed
		},
	}
	set, err := load(file(t, "limits.yaml", "policies: [{name: api, limits: 10/h}]"), &follow.service)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // the test is over
	if err := follow.run(ctx, set); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "gone") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("prints %q", &out)
	}
}

// Of any counters, in any order and with repetitions, the nearest are those of a
// plain sort, and the memory is bounded.
func TestTheNearestAreThoseOfAPlainSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.IntRange(1, 5).Draw(t, "top")
		n, seed := rapid.IntRange(0, 3*slack).Draw(t, "counters"), rapid.IntRange(1, 1000).Draw(t, "seed")
		repeated := rapid.IntRange(1, 50).Draw(t, "repeated")
		found := nearest{top: top}
		best := map[[2]string]float64{} // a plain model: the largest share of each
		for i := range n {
			one := near{name: fmt.Sprint("k", i*seed%997/repeated), limit: core.Limit{Name: fmt.Sprint("l", i%2)}, used: float64(i*seed%101) / 100}
			found.add(one)
			if len(found.held) > 4*top+slack {
				t.Fatalf("%d counters are held", len(found.held))
			}
			id := [2]string{one.name, one.limit.Name}
			best[id] = max(best[id], one.used)
		}
		type row struct {
			id   [2]string
			used float64
		}
		var want []row
		for id, used := range best {
			want = append(want, row{id, used})
		}
		slices.SortFunc(want, func(a, b row) int {
			return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.id[0], b.id[0]), cmp.Compare(a.id[1], b.id[1]))
		})
		want = want[:min(top, len(want))]
		got := found.list()
		if len(got) != len(want) {
			t.Fatalf("%d are listed, want %d", len(got), len(want))
		}
		for i, one := range got {
			if have := (row{[2]string{one.name, one.limit.Name}, one.used}); have != want[i] {
				t.Fatalf("number %d is %v, want %v", i, have, want[i])
			}
		}
	})
}
