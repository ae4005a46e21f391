package memcachedstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// counting is a swapper without values that counts how often it is asked.
type counting struct{ asked *int }

func (c counting) Load(_ context.Context, names []string) ([]swapstore.Value, error) {
	*c.asked++
	return make([]swapstore.Value, len(names)), nil
}

func (c counting) Swap(context.Context, string, swapstore.Value, []byte, time.Duration) (bool, error) {
	*c.asked++
	return true, nil
}

func (c counting) Delete(context.Context, []string) error {
	*c.asked++
	return nil
}

// An operation whose turn does not come in time has certainly charged nothing, and charges nothing later.
func TestAnOperationWhoseTurnDoesNotComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked int
		s := &timely{core.Must(swapstore.New(counting{&asked}, swapstore.Config{})), intime.New(time.Hour), options{timeout: 50 * time.Millisecond}, newTurns(), nil}
		b, err := s.Bind("l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}})
		if err != nil {
			t.Fatal(err)
		}
		take := func() error {
			return b.Take(t.Context(), &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 1, Results: make([]core.Result, 1)}}})
		}
		leave, err := s.turns.take(t.Context(), []core.Item{{Key: []byte("k")}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := take(); !errors.Is(err, core.ErrNotCharged) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 50*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		leave()
		synctest.Wait()
		if asked != 0 {
			t.Errorf("memcached was asked %d times", asked)
		}
		if err := take(); err != nil || asked == 0 {
			t.Errorf("in its turn: %v, memcached was asked %d times", err, asked)
		}
	})
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
func TestTheServersOfKeysAfterARebind(t *testing.T) {
	selector := new(memcache.ServerList)
	if err := selector.SetServers("127.0.0.1:1", "127.0.0.1:2"); err != nil {
		t.Fatal(err)
	}
	var asked int
	s := &timely{core.Must(swapstore.New(counting{&asked}, swapstore.Config{})), intime.New(time.Hour), options{timeout: time.Second}, newTurns(), selector}
	limits := []core.Limit{core.PerHour(3)}
	b, err := s.Bind("l", []core.StoreRule{{Name: "a", Limits: limits}})
	if err != nil {
		t.Fatal(err)
	}
	b, err = b.Rebind([]core.StoreRule{{Name: "b", Limits: limits}, {Name: "a", Limits: limits}})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]bool{}
	for _, key := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		for rule, name := range []string{"b", "a"} {
			want, err := selector.PickServer(core.StoreRule{Name: name, Limits: limits}.StoredKey("l", []byte(key)))
			if err != nil {
				t.Fatal(err)
			}
			if got := b.(timelyBound).ServerOf(rule, []byte(key)); got != want.String() {
				t.Errorf("key %s of rule %s: server %s, want %v", key, name, got, want)
			}
			of[want.String()] = true
		}
	}
	if len(of) != 2 {
		t.Errorf("all keys are on %v: nothing was tested", of)
	}
}
