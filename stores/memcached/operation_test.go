package memcachedstore

import (
	"context"
	"errors"
	"hash/maphash"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

func batchOf(cost int64, keys ...string) *core.Batch {
	b := new(core.Batch)
	for _, key := range keys {
		b.Items = append(b.Items, core.Item{Key: []byte(key), Cost: cost, Results: make([]core.Result, 1)})
	}
	return b
}

// An operation whose turn comes after its deadline charges nothing.
func TestAnOperationWhoseTurnDoesNotComeInTime(t *testing.T) {
	s := core.Must(New([]string{memcachedtest.Start(t).Addr}, Timeout(50*time.Millisecond), AnotherInstance()))
	t.Cleanup(func() { _ = s.Close() })
	c := core.Must(s.Open("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}}))
	end := s.turns.begin(batchOf(1, "k").Items)
	if err := storetest.Do(t.Context(), c, core.OpTake, batchOf(1, "k")); err == nil {
		t.Error("no error")
	}
	<-time.After(50 * time.Millisecond)
	end()
	for range 100 {
		s.turns.begin(batchOf(1, "k").Items)() // the operation has its turn
	}
	look := batchOf(0, "k")
	for err := errors.New(""); err != nil; {
		err = storetest.Do(t.Context(), c, core.OpPeek, look)
	}
	if left := look.Items[0].Results[0].Remaining; left != 3 {
		t.Errorf("%d left of 3", left)
	}
}

// Callers that take the same keys in different orders do not wait for each other without
// end.
func TestTurnsAreTakenInOneOrder(t *testing.T) {
	s := &turns{seed: maphash.MakeSeed()}
	var wg sync.WaitGroup
	for _, keys := range [][]string{{"a", "b", "c"}, {"c", "b", "a", "b"}} {
		wg.Go(func() {
			for range 10_000 {
				s.begin(batchOf(1, keys...).Items)()
			}
		})
	}
	wg.Wait()
}

// Nothing is sent to memcached for a caller that has gone.
func TestACallerThatHasGoneAsksNothing(t *testing.T) {
	server := memcachedtest.Start(t)
	s := items{memcache.New(server.Addr), 0}
	defer s.client.Close() //nolint:errcheck // of a test
	name := "x"
	if ok, err := s.Swap(t.Context(), name, swapstore.Value{}, []byte("kept"), time.Minute); !ok || err != nil {
		t.Fatal(ok, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, load := s.Load(gone, []string{name})
	_, swap := s.Swap(gone, "y", swapstore.Value{}, []byte("new"), time.Minute)
	for what, err := range map[string]error{"Load": load, "Swap": swap, "Delete": s.Delete(gone, []string{name})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for name, want := range map[string]bool{"x": true, "y": false} {
		if got := server.MustDo("get " + name); strings.HasPrefix(got, "VALUE") != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// After a Reconfigure the rules may be others: the server of a key is that of its rule now.
func TestTheServersOfKeysAfterAReopen(t *testing.T) {
	servers, selector := []string{"127.0.0.1:1", "127.0.0.1:2"}, new(memcache.ServerList)
	if err := selector.SetServers(servers...); err != nil {
		t.Fatal(err)
	}
	s := core.Must(New(servers, AnotherInstance()))
	t.Cleanup(func() { _ = s.Close() })
	limits := []core.Limit{core.PerHour(3)}
	c := core.Must(s.Open("l", []core.StoreRule{{Name: "a", Limits: limits}}))
	c = core.Must(c.Reopen([]core.StoreRule{{Name: "b", Limits: limits}, {Name: "a", Limits: limits}}))
	of := map[string]bool{}
	for _, key := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		for rule, name := range []string{"b", "a"} {
			want, err := selector.PickServer(core.StoreRule{Name: name}.StoredKey("l", []byte(key)))
			if err != nil {
				t.Fatal(err)
			}
			got := c.(interface{ ServerOf(int, []byte) string }).ServerOf(rule, []byte(key))
			if got != want.String() {
				t.Errorf("rule %s, key %s: %s, want %s", name, key, got, want)
			}
			of[got] = true
		}
	}
	if len(of) != 2 {
		t.Errorf("all keys are on %v: nothing was tested", of)
	}
}
