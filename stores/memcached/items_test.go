package memcachedstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// Only an error that proves that nothing was stored says so: a connection that
// was never made, or the server's word.
func TestErrorsThatProveThatNothingWasStored(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		{fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, false},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, false},
		{&memcache.ConnectTimeoutError{Addr: &net.TCPAddr{}}, true},
		{errors.New("SERVER_ERROR out of memory storing object"), true},
		{errors.New("SERVER_ERROR object too large for cache"), true},
		{errors.New("SERVER_ERROR something else"), false},
	} {
		if got := rejected(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// A Swap reports what the server said, or that the reply was lost. Without time left, it asks nobody.
func TestASwapThatFails(t *testing.T) {
	for reply, proves := range map[string]bool{"SERVER_ERROR out of memory storing object\r\n": true, "": false} {
		l := core.Must(net.Listen("tcp", "127.0.0.1:0"))
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Read(make([]byte, 1000))
				_, _ = c.Write([]byte(reply))
				_ = c.Close()
			}
		}()
		s := items{client: memcache.New(l.Addr().String())}
		if swapped, err := s.Swap(t.Context(), "k", swapstore.Value{}, []byte("state"), time.Minute); err == nil || swapped || errors.Is(err, core.ErrNotCharged) != proves {
			t.Errorf("%q: %t, %v", reply, swapped, err)
		}
		_ = l.Close()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, loaded := s.Load(gone, []string{"k"})
		_, swapped := s.Swap(gone, "k", swapstore.Value{}, nil, time.Minute)
		for _, err := range []error{loaded, swapped, s.Delete(gone, []string{"k"})} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("without time left: %v", err)
			}
		}
	}
}

// An item that needs to live for longer than memcached keeps one lives for as long
// as memcached keeps one: a longer time would mean a date, which is long past.
func TestAnItemThatOutlivesMemcachedsLongestTime(t *testing.T) {
	s := items{client: memcache.New(memcachedtest.Start(t).Addr)}
	for _, ttl := range []time.Duration{longest - 3*time.Second, longest - time.Second, longest, longest + time.Second, 366 * 24 * time.Hour} {
		name := ttl.String()
		for _, first := range []bool{true, false} { // another caller has been faster
			if swapped, err := s.Swap(t.Context(), name, swapstore.Value{}, []byte("state"), ttl); err != nil || swapped != first {
				t.Fatal(swapped, err)
			}
		}
		values, err := s.Load(t.Context(), []string{name})
		if err != nil || !bytes.Equal(values[0].Value, []byte("state")) {
			t.Errorf("a value for %v is %q at once (%v)", ttl, values[0].Value, err)
		}
		deleted := s.Delete(t.Context(), []string{name})
		if swapped, err := s.Swap(t.Context(), name, values[0], []byte("other"), ttl); deleted != nil || swapped || err != nil {
			t.Errorf("a deleted value is swapped: %t, %v; Delete: %v", swapped, err, deleted)
		}
	}
}

// What is sealed opens as it was; what has been cut, padded or changed does not.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("state"), []byte("5 "), 2)
	f.Add([]byte{}, []byte{}, 0)
	f.Fuzz(func(t *testing.T, value, foreign []byte, at int) {
		_ = open(foreign)
		sealed := seal(bytes.Clone(value))
		if got := open(sealed); !bytes.Equal(got, value) {
			t.Errorf("%q opens as %q", value, got)
		}
		if open(sealed[:len(sealed)-1]) != nil && len(value) > 0 {
			t.Errorf("%q opens when cut", value)
		}
		changed := bytes.Clone(sealed)
		changed[uint(at)%uint(len(changed))] ^= 1
		if open(changed) != nil {
			t.Errorf("%q opens when changed", value)
		}
	})
}

func batchOf(cost int64, keys ...string) *core.Batch {
	b := new(core.Batch)
	for _, key := range keys {
		b.Items = append(b.Items, core.Item{Key: []byte(key), Cost: cost, Results: make([]core.Result, 1)})
	}
	return b
}

// An operation whose turn comes after its deadline charges nothing.
func TestAnOperationWhoseTurnDoesNotComeInTime(t *testing.T) {
	if s := core.Must(New([]string{"127.0.0.1:1"})); s.timeout != 200*time.Millisecond {
		t.Errorf("a Timeout of %v by default", s.timeout)
	}
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

// Callers that take the same keys in different orders do not wait for each other without end.
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
			want := core.Must(selector.PickServer(core.StoreRule{Name: name}.StoredKey("l", []byte(key))))
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
