package policy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

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

// While a file is written again and again, in two halves, beside another one that
// changes all the time, every request is counted, by one version of the file as a
// whole.
func TestAWatchedFileInABusyFolder(t *testing.T) {
	const requests, changes = 24_901, 10
	file := func(version int) string {
		one, two := "0/s", "1000000000/h" // in turns one of the two denies all requests
		if version%2 == 1 {
			one, two = two, one
		}
		return fmt.Sprintf("policies: [{name: one, limits: %s name=v%d}, {name: two, limits: %s}, {name: all, limits: 1000000000/h, dry-run: true}]", one, version, two)
	}
	w := watch(t, filepath.Join(t.TempDir(), "p.yaml"), file(0))
	var sent, allowed, noises atomic.Int64
	stop, progress, noise := make(chan struct{}), make(chan struct{}, 1), make(chan struct{}, 1)
	signal := func(c chan struct{}) {
		select {
		case c <- struct{}{}:
		default: // somebody has been told
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-noise:
				if err := os.WriteFile(filepath.Join(filepath.Dir(w.path), "other"), fmt.Append(nil, noises.Add(1)), 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if w.set.Check(&explained{}).Allowed {
					allowed.Add(1)
				}
				if sent.Add(1)%10 == 0 {
					signal(progress)
					signal(noise)
				}
			}
		})
	}
	for i := range int64(changes) {
		w.writeInHalves(file(int(i + 1)))
		for w.reloaded() != nil { // half of the file may have stayed for long enough to be tried
		}
		for sent.Load() < (i+1)*requests/changes {
			<-progress
		}
	}
	close(stop)
	wg.Wait()
	if got := w.set.Limiter().Stats().Denied; got != uint64(sent.Load()) || sent.Load() < requests { //nolint:gosec // a count is not negative
		t.Errorf("%d requests were counted of %d", got, sent.Load())
	}
	if allowed.Load() > 0 {
		t.Errorf("%d of %d requests were allowed: they have met halves of two versions", allowed.Load(), sent.Load())
	}
	if noises.Load() < changes {
		t.Errorf("the other file changed only %d times", noises.Load())
	}
	t.Logf("%d requests, %d changes of the other file", sent.Load(), noises.Load())
}

// writeInHalves writes the file in two steps, without anything between them.
func (w *watched) writeInHalves(text string) {
	w.t.Helper()
	f, err := os.Create(w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	half := len(text) / 2
	_, first := f.WriteString(text[:half])
	_, second := f.WriteString(text[half:])
	if err := errors.Join(first, f.Sync(), second, f.Close()); err != nil {
		w.t.Fatal(err)
	}
}
