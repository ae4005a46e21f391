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

// spreads tests limits whose windows are spread: beside each other, each of them alone, and
// beside the limit that is the same and is not spread.
func (s *suite) spreads(t *testing.T) {
	clock := NewClock(start())
	store := s.new(t, clock.Now)
	fixed := core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, Aligned: true}
	sliding := core.Limit{Quota: 3, Window: time.Hour, Aligned: true}
	spread := func(l core.Limit) core.Limit {
		l.Spread = true
		return l
	}
	for _, limits := range [][]core.Limit{
		{spread(fixed)}, {spread(sliding)},
		{spread(fixed), fixed}, {sliding, spread(sliding), spread(fixed)},
	} {
		for _, quotas := range [][]int64{nil, {2, 2, 2}} {
			spreadOver(t, store, clock, limits, quotas)
		}
	}
}

// spreadOver compares three windows of each of a few keys with the model's.
func spreadOver(t *testing.T, store core.Store, clock *Clock, limits []core.Limit, quotas []int64) {
	t.Helper()
	limiter, rules := uniqueName(), []core.StoreRule{{Name: "r", Limits: limits}}
	bound, err := store.Bind(limiter, rules)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{t, bound, rules}
	states := map[string][]*modelLimit{}
	ends := map[time.Duration]bool{}
	for range 6 {
		for i := range 12 {
			key := fmt.Sprint("k", i)
			if states[key] == nil {
				for _, l := range limits {
					if quotas != nil {
						l.Quota = quotas[0]
					}
					states[key] = append(states[key], newModelLimit(l, limiter, rules[0], []byte(key)))
				}
			}
			now, admitted := clock.Now().UnixMicro(), true
			for _, l := range states[key] {
				admitted = admitted && l.admits(now, 1)
			}
			it := c.item(0, key, 1)
			if quotas != nil {
				it.Quotas = quotas[:len(limits)]
			}
			b := c.batch(false, it)
			for j, l := range states[key] {
				if admitted {
					l.charge(now, 1)
				}
				if r := b.Items[0].Results[j]; b.Allowed != admitted || r.Remaining != l.remaining(now) || r.ResetAfter != l.reset(now) {
					t.Errorf("%s of %v, %v: allowed %v, %+v; the model says %v, %d left, all after %v", key, limits, limits[j], b.Allowed, r, admitted, l.remaining(now), l.reset(now))
				}
			}
			ends[b.Items[0].Results[len(limits)-1].ResetAfter] = true
		}
		clock.Advance(29 * time.Minute)
	}
	if limits[len(limits)-1].Spread && len(ends) < 30 {
		t.Errorf("%v: windows of 12 keys end after %d lengths of time", limits, len(ends))
	}
	other, err := bound.Rebind([]core.StoreRule{{Name: "r", Limits: limits[len(limits)-1:]}})
	if err != nil {
		t.Fatal(err)
	}
	again := &counter{t, other, []core.StoreRule{{Name: "r", Limits: limits[len(limits)-1:]}}}
	l := newModelLimit(limits[len(limits)-1], limiter, rules[0], []byte("k0"))
	l.charges = states["k0"][len(limits)-1].charges
	if got, want := again.remaining("k0"), l.remaining(clock.Now().UnixMicro()); got != want {
		t.Errorf("%v: %d hits left after Rebind, want %d", limits, got, want)
	}
}
