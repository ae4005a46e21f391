package memcachedstore

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// A value that is sealed is a value, also if it is empty.
func TestAnEmptyValue(t *testing.T) {
	if open(seal(nil)) == nil {
		t.Error("a sealed empty value opens as none")
	}
	if open([]byte{0, 0, 0}) != nil {
		t.Error("three bytes open as a value")
	}
}

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

// An item that needs to live for longer than memcached keeps one lives for as long
// as memcached keeps one: a longer time would mean a date, which is long past.
func TestAnItemThatOutlivesMemcachedsLongestTime(t *testing.T) {
	s := items{client: memcache.New(memcachedtest.Start(t).Addr), slack: 2 * time.Second}
	for _, ttl := range []time.Duration{longest - 3*time.Second, longest - time.Second, longest, longest + time.Second, 366 * 24 * time.Hour} {
		name := ttl.String()
		if swapped, err := s.Swap(t.Context(), name, swapstore.Value{}, []byte("state"), ttl); err != nil || !swapped {
			t.Fatal(swapped, err)
		}
		values, err := s.Load(t.Context(), []string{name})
		if err != nil || !bytes.Equal(values[0].Value, []byte("state")) {
			t.Errorf("a value for %v is %q at once (%v)", ttl, values[0].Value, err)
		}
	}
}

// A server that is gone keeps no item of another server from being deleted.
func TestDeleteBesideAServerThatIsGone(t *testing.T) {
	selector := new(memcache.ServerList)
	alive := memcachedtest.Start(t).Addr
	if err := selector.SetServers("127.0.0.1:1", alive); err != nil {
		t.Fatal(err)
	}
	s := items{client: memcache.NewFromSelector(selector)}
	var names [2]string // of an item of each server
	for i := 0; names[0] == "" || names[1] == ""; i++ {
		name := fmt.Sprint("item-", i)
		addr, err := selector.PickServer(name)
		if err != nil {
			t.Fatal(err)
		}
		if addr.String() == alive {
			names[1] = name
		} else {
			names[0] = name
		}
	}
	if swapped, err := s.Swap(t.Context(), names[1], swapstore.Value{}, []byte("state"), time.Minute); err != nil || !swapped {
		t.Fatal(swapped, err)
	}
	if err := s.Delete(t.Context(), names[:]); err == nil {
		t.Error("no error")
	}
	if values, err := s.Load(t.Context(), names[1:]); err != nil || values[0].Value != nil {
		t.Errorf("the item is %q (%v)", values[0].Value, err)
	}
}

// What is sealed opens as it was; what has been cut, padded or changed does
// not.
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
