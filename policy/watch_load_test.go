package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// While the file changes all the time, every request is counted, by one version
// of the file as a whole.
func TestReloadingUnderLoad(t *testing.T) {
	const workers, changes = 8, 200
	file := func(version int) string {
		// One of the two refuses everything, in turns: a request that met a half of
		// each of two versions could be admitted.
		one, two := "0/s", "1000000000/h"
		if version%2 == 1 {
			one, two = two, one
		}
		return fmt.Sprintf("policies: [{name: one, limits: %s name=v%d}, {name: two, limits: %s}, {name: all, limits: 1000000000/h, shadow: true}]", one, version, two)
	}
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	defer store.Close() //nolint:errcheck // nothing depends on it
	s, err := policy.Parse("f", []byte(file(0)), policy.WithStore(store))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing depends on it
	var sent, admitted atomic.Uint64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				sent.Add(1)
				if s.Check(&explained{}).Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	for i := range changes {
		if err := s.Replace([]byte(file(i))); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	all, _ := s.Limiter("all")
	if got := all.Stats().Allowed; got != sent.Load() || got == 0 {
		t.Errorf("%d requests were counted of %d", got, sent.Load())
	}
	if n := admitted.Load(); n > 0 {
		t.Errorf("%d requests were admitted: they have met halves of two versions", n)
	}
}

// A folder in which another file changes all the time: every change of the
// policy file is in force, and no request meets halves of two versions.
func TestAWatchedFileInABusyFolder(t *testing.T) {
	file := func(version int) string {
		one, two := "0/s", "1000000000/h" // in turns one of the two refuses all requests
		if version%2 == 1 {
			one, two = two, one
		}
		return fmt.Sprintf("policies: [{name: one, limits: %s name=v%d}, {name: two, limits: %s}]", one, version, two)
	}
	w := watch(t, filepath.Join(t.TempDir(), "p.yaml"), file(0))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		other, tick := filepath.Join(filepath.Dir(w.path), "other"), time.NewTicker(5*time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				if err := os.WriteFile(other, []byte(now.String()), 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var admitted, sent atomic.Int64
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if sent.Add(1); w.set.Check(&explained{}).Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	for i := range 5 {
		w.write(file(i + 1))
		if err := w.reloaded(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if admitted.Load() > 0 || sent.Load() == 0 {
		t.Errorf("%d of %d requests were admitted: they have met halves of two versions", admitted.Load(), sent.Load())
	}
}
