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
	"github.com/floodgate-go/floodgate/policy"
)

// watched is a file that is being watched.
type watched struct {
	t       *testing.T
	path    string
	set     *policy.Set
	reloads chan error
	log     lines
}

// lines is what has been logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func watch(t *testing.T, path, text string) *watched {
	t.Helper()
	w := &watched{t: t, path: path, reloads: make(chan error, 100)}
	if text != "" {
		w.write(text)
	}
	var err error
	w.set, err = policy.Watch(t.Context(), path, policy.OnReload(func(err error) { w.reloads <- err }), policy.Log(slog.New(slog.NewTextHandler(&w.log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.set.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *watched) write(text string) {
	w.t.Helper()
	if err := replaceFile(w.path, text); err != nil {
		w.t.Fatal(err)
	}
}

// replaceFile puts a new file in the place of one, as editors do. Whoever reads it meanwhile
// finds the old text or the new one. A file that is written in place is empty for an instant.
func replaceFile(path, text string) error {
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path))
}

func (w *watched) reloaded() error {
	w.t.Helper()
	select {
	case err := <-w.reloads:
		return err
	case <-time.After(10 * time.Second):
		w.t.Fatal("the file is not read again")
		return nil
	}
}

// left is what one policy has left of its quota.
func (w *watched) left(name string) int64 {
	w.t.Helper()
	d, err := w.set.Limiter().Peek(w.t.Context(), 1, core.Hit{Rule: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return d.Remaining
}

func TestAWatchedFileIsReadAgainWhenItChanges(t *testing.T) {
	synctest.Test(t, testAWatchedFile)
}

func testAWatchedFile(t *testing.T) {
	w := watch(t, filepath.Join(t.TempDir(), "p.yaml"), "policies: [{name: a, limits: 5/h}]")
	w.set.Check(&explained{})
	w.write("policies: [{name: a, limits: 9/h}]")
	if err := w.reloaded(); err != nil {
		t.Fatal(err)
	}
	if got := w.left("a"); got != 8 {
		t.Errorf("%d left of 9 after 1, want 8", got)
	}
	w.write("policies: [{name: a, limits: 9/x}]")
	if err := w.reloaded(); len(policy.Errors(err)) != 1 || policy.Errors(err)[0].Line != 1 {
		t.Errorf("a broken file: %v", err)
	}
	if got := w.left("a"); got != 8 {
		t.Errorf("%d left after a broken file, want 8", got)
	}
	if log := w.log.String(); strings.Count(log, "level=INFO") != 1 || strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "the last good one stays") {
		t.Errorf("the log:\n%s", log)
	}
	w.write("policies: [{name: a, limits: 7/h}]")
	if err := w.reloaded(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	if err := w.reloaded(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	if got := w.left("a"); got != 6 {
		t.Errorf("%d left after the file has gone, want 6", got)
	}
	w.write("policies: [{name: a, limits: 3/h}]")
	if err := w.reloaded(); err != nil || w.left("a") != 2 {
		t.Errorf("the file is back: %v, %d left", err, w.left("a"))
	}
}

func TestWatchingEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	if _, err := policy.Watch(t.Context(), path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that is not there: %v", err)
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	if _, err := policy.Watch(t.Context(), filepath.Join(nowhere, "p.yaml")); err == nil || !strings.Contains(err.Error(), nowhere) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte("policies: [{name: a, limits: 5/x}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Watch(t.Context(), path); len(policy.Errors(err)) != 1 {
		t.Errorf("a broken file: %v", err)
	}
	if err := os.WriteFile(path, []byte("policies: [{name: a, limits: 5/h}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err := policy.Watch(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // goleak sees whether that is enough
	if d := s.Check(&explained{}); !d.Allowed {
		t.Errorf("a Set that no longer watches: %+v", d)
	}
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
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
	s, err := policy.Parse("f", []byte(file(0)), policy.WithStore(store))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing depends on it
	var sent, allowed atomic.Uint64
	stop := make(chan struct{})
	var wg, started sync.WaitGroup
	check := func() {
		sent.Add(1)
		if s.Check(&explained{}).Allowed {
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
	if got := s.Limiter().Stats().Denied; got != sent.Load() || got == 0 {
		t.Errorf("%d requests were counted of %d", got, sent.Load())
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
	s.expect(200, "PUT", "/", from("10.0.0.9"))
	s.replace("policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 1/m}, {name: b, limits: 1/m, match: {methods: [PUT]}}]")
	s.expect(200, "PUT", "/", from("10.0.0.8")) // back: what was removed begins anew
	s.expect(429, "PUT", "/", from("10.0.0.8"))
	if st := s.set.Limiter().Stats(); st.Allowed != 6 || st.Denied != 5 {
		t.Errorf("stats go on over changes: %+v", st)
	}
}

func TestABrokenChangeChangesNothing(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/m}]")
	for _, text := range []string{"", "policies: [{name: a, limits: 5/x}]", "store: {redis: {address: 'a:1'}}\npolicies: [{name: a, limits: 5/m}]", "local: {max-keys: 5}\npolicies: [{name: a, limits: 5/m}]"} {
		if err := s.set.Replace([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	if err := s.set.Reload(); err == nil || !strings.Contains(err.Error(), "Replace") {
		t.Errorf("Reload without a file: %v", err)
	}
}

func TestAClosedSetFails(t *testing.T) {
	set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 1/m}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(set.Close(), set.Close()); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, set: set}
	s.mount(set)
	s.expect(503, "GET", "/")
	if err := set.Replace([]byte("policies: [{name: a, limits: 1/m}]")); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Replace: %v", err)
	}
}

func TestCountingMayChangeWhereTheProgramGivesTheStore(t *testing.T) {
	const head = "store: {redis: {address: 'a:1'}}\n"
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

// picky is a store that does not take every limit.
type picky struct{ core.Store }

func (p picky) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if err := refuse(rules); err != nil {
		return nil, err
	}
	c, err := p.Store.Open(limiter, rules)
	return pickyCounters{c}, err
}

type pickyCounters struct{ core.Counters }

func (p pickyCounters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	if err := refuse(rules); err != nil {
		return nil, err
	}
	c, err := p.Counters.Reopen(rules)
	return pickyCounters{c}, err
}

func refuse(rules []core.StoreRule) error {
	for _, r := range rules {
		if r.Limits[0].Quota == 13 {
			return fmt.Errorf("%w: quota 13", core.ErrConfig)
		}
	}
	return nil
}

// If only the store rejects a limit, the former policies stay in force.
func TestAChangeThatTheStoreRefuses(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	defer memory.Close() //nolint:errcheck // nothing depends on it
	set, err := policy.Parse("f", []byte("policies: [{name: one, limits: 100/h}, {name: two, limits: 2/h}, {name: b, limits: 1000/h}]"), policy.WithStore(picky{memory}))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // nothing depends on it
	err = set.Replace([]byte("policies: [{name: one, limits: 100/h}, {name: b, limits: 13/h}]"))
	if err == nil || !strings.Contains(err.Error(), "quota 13") {
		t.Fatalf("the change: %v", err)
	}
	for i := range 4 {
		if d := set.Check(&explained{}); d.Allowed != (i < 2) {
			t.Errorf("request %d: %+v", i, d)
		}
	}
}
