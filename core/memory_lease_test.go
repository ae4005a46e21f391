package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// heldSlots is a Memory that is always full, beside a plain list of who holds what.
type heldSlots struct {
	*testing.T
	r     *rand.Rand
	l     *core.Limiter
	quota int
	now   time.Time
	held  map[string][]func()
	floor int // keys that have been counted
}

func (h *heldSlots) key() string { return fmt.Sprint(h.r.IntN(40)) }

func (h *heldSlots) acquire() {
	key := h.key()
	d, release, err := h.l.Acquire(h.Context(), core.Hit{Rule: "slots", Key: key})
	if want := len(h.held[key]) < h.quota; err != nil || d.Allowed != want {
		h.Fatalf("key %s, of which %d are held: %v, %v", key, len(h.held[key]), d, err)
	}
	if d.Allowed {
		h.held[key] = append(h.held[key], release)
	}
}

func (h *heldSlots) release() {
	key := h.key()
	if n := len(h.held[key]); n > 0 {
		i := h.r.IntN(n)
		h.held[key][i]()
		h.held[key] = slices.Delete(h.held[key], i, i+1)
	}
}

// flood counts keys that come once, some of which are denied: they may evict each other.
func (h *heldSlots) flood() {
	for range 50 {
		h.floor++
		for range 1 + h.r.IntN(2) {
			if _, err := h.l.Take(h.Context(), 1, core.Hit{Rule: "rate", Key: fmt.Sprint(h.floor)}); err != nil {
				h.Fatal(err)
			}
		}
	}
}

func (h *heldSlots) look() {
	key := h.key()
	d, err := h.l.Peek(h.Context(), 0, core.Hit{Rule: "slots", Key: key})
	if err != nil || d.Remaining != int64(h.quota-len(h.held[key])) {
		h.Fatalf("key %s: %d left, and %d of %d are held: %v", key, d.Remaining, len(h.held[key]), h.quota, err)
	}
}

// A slot that is held is never evicted for room, and never lapses in the process.
func TestAHeldSlotIsNeverEvicted(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		h := &heldSlots{T: t, r: rand.New(rand.NewPCG(seed, 0)), quota: 3, now: time.Unix(1_764_000_000, 0), held: map[string][]func(){}}
		m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1 + h.r.IntN(60), Clock: func() time.Time { return h.now }}))
		h.l = core.Must(core.New(core.Config{Store: m, Rules: []core.Rule{
			{Name: "slots", Limits: []core.Limit{core.InFlight(int64(h.quota))}},
			{Name: "rate", Limits: []core.Limit{core.PerHour(1)}},
		}}))
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
		for range 2000 {
			switch h.r.IntN(8) {
			case 0, 1, 2:
				h.acquire()
			case 3, 4:
				h.release()
			case 5:
				h.flood()
			case 6:
				h.look()
			case 7:
				h.now = h.now.Add([]time.Duration{time.Second, time.Minute, 3 * time.Hour}[h.r.IntN(3)])
			}
		}
		for key := range h.held {
			for _, release := range h.held[key] {
				release()
			}
			h.held[key] = nil
			h.look()
		}
	}
}
