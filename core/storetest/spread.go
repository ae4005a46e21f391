package storetest

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// shiftOf returns by how many microseconds the windows of a key are moved: the part of the
// window that the first 64 bits of a hash of the stored name are of 2^64.
func shiftOf(l core.Limit, name string) int64 {
	sum := sha256.Sum256([]byte(name))
	n := new(big.Int).SetBytes(sum[:8])
	n.Mul(n, big.NewInt(l.Window.Microseconds()))
	return n.Rsh(n, 64).Int64()
}

func newModelLimit(l core.Limit, limiter string, rule core.StoreRule, key []byte) *modelLimit {
	m := &modelLimit{Limit: l}
	if l.Spread {
		m.shift = shiftOf(l, rule.StoredKey(limiter, key))
	}
	return m
}

// spreads tests limits whose windows are spread.
func (s *suite) spreads(t *testing.T) {
	clock := NewClock(start())
	store := s.new(t, clock.Now)
	spread := core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, Aligned: true, Spread: true}
	aligned := spread
	aligned.Spread = false
	limiter := uniqueName()
	rule := core.StoreRule{Name: "r", Limits: []core.Limit{spread, aligned}}
	bound, err := store.Bind(limiter, []core.StoreRule{rule})
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{t, bound, []core.StoreRule{rule}}
	now := clock.Now().UnixMicro()
	seen := map[time.Duration]bool{}
	for i := range 20 {
		key := fmt.Sprint("k", i)
		length := spread.Window.Microseconds()
		moved := (now - shiftOf(spread, rule.StoredKey(limiter, []byte(key)))) % length
		b := c.take(key, 1)
		for j, want := range []int64{length - moved, length - now%length} {
			if got := b.Items[0].Results[j].ResetAfter; got != time.Duration(want)*time.Microsecond {
				t.Errorf("%s, %v: the window ends after %v, want %v", key, rule.Limits[j], got, time.Duration(want)*time.Microsecond)
			}
		}
		seen[b.Items[0].Results[0].ResetAfter] = true
	}
	if len(seen) < 15 {
		t.Errorf("the windows of 20 keys end at %d times", len(seen))
	}
	other, err := bound.Rebind([]core.StoreRule{{Name: "r", Limits: []core.Limit{spread}}})
	if err != nil {
		t.Fatal(err)
	}
	if left := (&counter{t, other, []core.StoreRule{{Name: "r", Limits: []core.Limit{spread}}}}).remaining("k0"); left != 2 {
		t.Errorf("%d hits left after Rebind, want 2", left)
	}
}
