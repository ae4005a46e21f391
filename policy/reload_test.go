package policy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/policy"
)

// watched is a file that is being watched. Its times are those of synctest.
type watched struct {
	t       *testing.T
	path    string
	set     *policy.Set
	mu      sync.Mutex
	reports []error // of OnReload
	log     bytes.Buffer
}

const quotaFile = "policies: [{name: a, limits: %d/h, deny: [10.0.0.1]}]"

func watch(t *testing.T, path string) *watched {
	t.Helper()
	w := &watched{t: t, path: path}
	var err error
	w.set, err = policy.Watch(t.Context(), path, policy.OnReload(func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reports = append(w.reports, err)
	}), policy.Log(slog.New(slog.NewTextHandler(&w.log, nil))))
	must(t, err)
	return w
}

// must fails the test if one of the errors is not nil.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}

// soon waits two seconds, the promise of Watch. Then a quota is in force, and there have
// been so many reports. It returns the last one.
func (w *watched) soon(what string, quota int64, reports int) error {
	w.t.Helper()
	time.Sleep(2 * time.Second)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.set.Policies()[0].Rules[0].Limits[0].Quota; got != quota || len(w.reports) != reports {
		w.t.Errorf("%s: the quota is %d and there were %d reports, want %d and %d", what, got, len(w.reports), quota, reports)
	}
	if len(w.reports) == 0 {
		return nil
	}
	return w.reports[len(w.reports)-1]
}

func TestAWatchedFileIsReadAgainWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "p.yaml")
		write(t, path, fmt.Sprintf(quotaFile, 5))
		w := watch(t, path)
		w.set.Check(get("/"))
		must(t, w.soon("no change", 5, 0))
		write(t, path, fmt.Sprintf(quotaFile, 9))
		must(t, w.soon("a change", 9, 1), w.soon("no other change", 9, 1))
		if d, err := w.set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: "a"}); err != nil || d.Remaining != 8 {
			t.Errorf("%d left of 9 after 1, want 8: %v", d.Remaining, err)
		}
		must(t, w.set.Replace(fmt.Appendf(nil, quotaFile, 7)))
		must(t, w.soon("what the program has put in force stays until the file changes", 7, 1))
		write(t, path, "policies: [{name: a, limits: 9/x}]")
		if err := errors.Join(w.soon("a broken file", 7, 2), w.soon("the same broken file", 7, 2)); len(policy.Errors(err)) != 2 || policy.Errors(err)[0].Line != 1 {
			t.Errorf("a broken file: %v", err)
		}
		must(t, os.Remove(path))
		if err := w.soon("no file", 7, 3); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no file: %v", err)
		}
		write(t, path, fmt.Sprintf(quotaFile, 3))
		must(t, w.soon("a file again", 3, 4))
		if log := w.log.String(); strings.Count(log, "file="+path+" policies=1") != 2 || strings.Count(log, "file="+path+" error=") != 2 || !strings.Contains(log, "the last good one stays") {
			t.Errorf("the log:\n%s", log)
		}
		// A file that is being written is left alone until it stays as it is.
		for range 20 {
			write(t, path, "policies: [{name: a, limits: 7")
			time.Sleep(240 * time.Millisecond)
			write(t, path, fmt.Sprintf(quotaFile, 7))
			time.Sleep(1500 * time.Millisecond)
		}
		must(t, w.soon("half-written files", 7, 5), w.set.Close())
	})
}

func TestWatchingEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	_, loaded := policy.Load(path)
	if _, err := policy.Watch(t.Context(), path); !errors.Is(err, os.ErrNotExist) || !errors.Is(loaded, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is not there: %v", err)
	}
	write(t, path, "policies: [{name: a, limits: 5/x}]")
	if _, err := policy.Watch(t.Context(), path); len(policy.Errors(err)) != 1 || policy.Errors(err)[0].File != path {
		t.Errorf("a broken file: %v", err)
	}
	synctest.Test(t, func(t *testing.T) { // which sees goroutines that do not end
		write(t, path, fmt.Sprintf(quotaFile, 1))
		ctx, cancel := context.WithCancel(t.Context())
		ended := core.Must(policy.Watch(ctx, path))
		hang := make(chan struct{})
		closed := core.Must(policy.Watch(t.Context(), path, policy.OnReload(func(error) { <-hang })))
		cancel()
		write(t, path, fmt.Sprintf(quotaFile, 2))
		time.Sleep(2 * time.Second)
		must(t, closed.Close()) // although OnReload has not returned
		close(hang)
		if d := ended.Check(get("/")); !d.Allowed || ended.Policies()[0].Rules[0].Limits[0].Quota != 1 {
			t.Errorf("a Set that no longer watches: %+v", d)
		}
		must(t, ended.Close())
	})
}

// While the file changes all the time, every request is counted, by one version
// of the file as a whole.
func TestReloadingUnderLoad(t *testing.T) {
	const workers, changes = 8, 200
	file := func(version int) string {
		// one of the two denies everything, in turns: a request that met a half of
		// each of two versions could be allowed.
		one, two := "0/s", "1000000000/h"
		if version%2 == 1 {
			one, two = two, one
		}
		return fmt.Sprintf("policies: [{name: one, limits: %s name=v%d}, {name: two, limits: %s}, {name: all, limits: 1000000000/h, dry-run: true}]", one, version, two)
	}
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	defer store.Close() //nolint:errcheck // nothing depends on it
	counter := new(hooktest.Counter)
	s, err := policy.Parse("f", []byte(file(0)), policy.WithStore(store), policy.WithObserver(counter))
	must(t, err)
	defer s.Close() //nolint:errcheck // nothing depends on it
	var sent, allowed atomic.Uint64
	stop := make(chan struct{})
	var wg, started sync.WaitGroup
	check := func() {
		sent.Add(1)
		if s.Check(get("/")).Allowed {
			allowed.Add(1)
		}
	}
	started.Add(workers)
	for range workers {
		wg.Go(func() {
			check()
			started.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				check()
			}
		})
	}
	started.Wait()
	for i := range changes {
		if err := s.Replace([]byte(file(i))); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if got := counter.Read().Denied; got != sent.Load() || got == 0 {
		t.Errorf("%d requests were denied of %d", got, sent.Load())
	}
	if n := allowed.Load(); n > 0 {
		t.Errorf("%d requests were allowed: they have met halves of two versions", n)
	}
}

func TestCountsStayWhileAFileChanges(t *testing.T) {
	s := newSite(t, "policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 2/m}, {name: b, limits: 1/m, match: {methods: [PUT]}}]")
	s.expect(200, "GET", "/")
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	s.expect(200, "PUT", "/", from("10.0.0.9"))
	s.replace("policies: [{name: b, limits: 1/m, match: {methods: [PUT]}}, {name: a, key: ip, match: {methods: [GET]}, limits: 3/m}]")
	s.expect(200, "GET", "/") // raised
	s.expect(429, "GET", "/")
	s.expect(429, "PUT", "/", from("10.0.0.9")) // unchanged
	s.replace("policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 1/m}]")
	s.expect(429, "GET", "/") // lowered
	d := s.set.Check(get("/"))
	s.replace("policies: [{name: c, limits: 9/m}]")
	if got := s.set.Deny(get("/"), d).Status; got != 429 {
		t.Errorf("a decision of a policy that has gone since: %d", got)
	}
	s.expect(200, "PUT", "/", from("10.0.0.9"))
	s.replace("policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 1/m}, {name: b, limits: 1/m, match: {methods: [PUT]}}]")
	s.expect(200, "PUT", "/", from("10.0.0.8")) // back: what was removed begins anew
	s.expect(429, "PUT", "/", from("10.0.0.8"))
}

func TestAClosedSetFails(t *testing.T) {
	var log bytes.Buffer
	set := core.Must(policy.Parse("f", []byte("{store: {redis: {address: '127.0.0.1:1'}}, policies: [{name: a, limits: 1/m, counting: local, match: {methods: [GET]}}, {name: b, in-flight: 1, counting: local, match: {methods: [PUT]}}]}"), policy.Log(slog.New(slog.NewTextHandler(&log, nil)))))
	must(t, set.Close(), set.Close())
	s := &site{t: t, set: set}
	s.mount(set)
	s.expect(503, "GET", "/")
	s.expect(503, "PUT", "/")
	if !strings.Contains(log.String(), "limiter=policies operation=check rule=a ") || !strings.Contains(log.String(), "limiter=policies.b ") {
		t.Errorf("logged: %s", &log)
	}
	if err := set.Replace([]byte("policies: [{name: a, limits: 1/m}]")); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Replace: %v", err)
	}
}

func TestCountingMayChangeWhereTheProgramGivesTheStore(t *testing.T) {
	const head = "store: {redis: {address: 'a:1', password: {env: NO_SUCH_VARIABLE}}}\n"
	s := newSite(t, head+"policies: [{name: a, limits: 1/m, counting: local}]")
	s.expect(200, "GET", "/")
	s.replace(head + "policies: [{name: a, limits: 1/m}]")
	s.expect(429, "GET", "/")
}

// A rejected change leaves the policies in force unchanged, whatever it would
// have removed: even the counters of a rule that it does not have.
func TestARefusedChangeTakesNoCountersAway(t *testing.T) {
	const two = "{name: one, limits: 100/h}, {name: two, limits: 2/h}"
	for name, text := range map[string]string{
		"it lacks what is mounted": "policies: [{name: one, limits: 100/h}]",
		"another policy is wrong":  "policies: [{name: one, limits: 100/h}, {name: b, limits: 1/s name=l}, {name: c, limits: 2/s name=l}]",
	} {
		s := newSite(t, "policies: ["+two+", {name: b, limits: 1000/h}]")
		if _, err := s.set.Only("b"); err != nil {
			t.Fatal(err)
		}
		s.expect(200, "GET", "/")
		if err := s.set.Replace([]byte(text)); err == nil {
			t.Fatalf("%s: it is taken", name)
		}
		s.expect(200, "GET", "/")
		s.expect(429, "GET", "/")
		s.expect(429, "GET", "/")
	}
}
