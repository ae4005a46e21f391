package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// counts are the hits that each key has in the present window.
type counts map[string]int64

func (c counts) takes(key string, cost, quota int64) bool {
	if c[key]+cost > quota {
		return false
	}
	c[key] += cost
	return true
}

func (c counts) give(key string, hits int64) { c[key] = max(0, c[key]-hits) }

// modelled is one of several instances, and the model of its own counters.
type modelled struct {
	*core.Limiter
	store *resilient.Store
	link  *link
	down  bool // the link fails
	late  bool // the link loses the answers
	own   counts
	taken []core.Decision // in the present window, and not adjusted yet
}

// history is a run of the model: what the shared store counts, and what was allowed.
type history struct {
	rand             *rand.Rand
	quota, share     int64
	all              []*modelled
	stored           counts
	byStore, without counts // allowed in the present window
}

// The model of the promise: if the store answers, it decides, and the instance counts what was
// allowed. Otherwise the instance decides with its own counters and its share. Nothing is
// carried over. In each window the store allows a key at most its quota, and all instances
// together at most their shares.
func TestOutagesAgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	for run := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, rand.New(rand.NewPCG(seed, run)))
			for range 6 {
				for range 50 {
					if wrong := h.step(t.Context()); wrong != "" {
						t.Fatalf("seed %d, run %d: %s", seed, run, wrong)
					}
				}
				if wrong := h.nextWindow(); wrong != "" {
					t.Fatalf("seed %d, run %d: %s", seed, run, wrong)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}

var modelKeys = []string{"a", "b", "c"}

const modelWindow = 100 * 24 * time.Hour // longer than a run's steps take

func newHistory(t *testing.T, r *rand.Rand) *history {
	h := &history{rand: r, quota: 1 + r.Int64N(30), stored: counts{}, byStore: counts{}, without: counts{}}
	n := 1 + r.IntN(4)
	h.share = max(1, h.quota/int64(n))
	shared := newServer(nil)
	limit := core.Limit{Quota: h.quota, Window: modelWindow, Algorithm: core.FixedWindow, Aligned: true}
	time.Sleep(time.Until(time.Now().Truncate(modelWindow).Add(modelWindow + time.Hour)))
	for range n {
		i := &modelled{link: &link{Store: shared}, own: counts{}}
		i.store = newStore(t, i.link, resilient.Config{Instances: n, Failures: 1 + r.IntN(3)})
		i.Limiter = newLimiter(t, i.store, limit)
		h.all = append(h.all, i)
	}
	return h
}

// step does something, and returns what is wrong.
func (h *history) step(ctx context.Context) string {
	i := h.all[h.rand.IntN(len(h.all))]
	key := modelKeys[h.rand.IntN(len(modelKeys))]
	switch h.rand.IntN(10) {
	case 0:
		i.down, i.late = h.rand.IntN(2) == 0, h.rand.IntN(4) == 0
		i.link.late.Store(i.late)
		if i.link.fail(nil); i.down {
			i.link.fail(errGone)
		}
	case 1:
		time.Sleep(time.Duration(h.rand.IntN(5)) * time.Second)
	case 2:
		return h.reset(ctx, i, key)
	case 3, 4:
		return h.adjust(ctx, i)
	default:
		return h.take(ctx, i, key, 1+h.rand.Int64N(3))
	}
	return ""
}

// asks does an operation, and returns whether the store has done it and whether it has answered.
func (i *modelled) asks(do func()) (done, answered bool) {
	before := i.link.asked.Load()
	do()
	done = !i.down && i.link.asked.Load() > before
	return done, done && !i.late
}

func (h *history) take(ctx context.Context, i *modelled, key string, cost int64) string {
	wasUp := i.store.Up()
	var d core.Decision
	var err error
	done, answered := i.asks(func() { d, err = i.Take(ctx, cost, user(key)) })
	if wasUp && !i.down && !done {
		return "the circuit is closed, and the store was not asked"
	}
	want := done && h.stored.takes(key, cost, h.quota)
	if answered && want {
		i.own[key] += cost
	}
	if !answered {
		want = i.own.takes(key, cost, h.share)
	}
	if err != nil || d.Allowed != want || d.Degraded == answered {
		return fmt.Sprintf("a take of %d of key %s: %v, %v; want allowed %v, degraded %v; store %v, instance %v, quota %d, share %d", cost, key, d, err, want, !answered, h.stored, i.own, h.quota, h.share)
	}
	if d.Allowed {
		i.taken = append(i.taken, d)
		if answered {
			h.byStore[key] += cost
		} else {
			h.without[key] += cost
		}
	}
	return ""
}

// adjust gives a decision's hits back, or charges more, above the quota too.
func (h *history) adjust(ctx context.Context, i *modelled) string {
	if len(i.taken) == 0 {
		return ""
	}
	d := i.taken[len(i.taken)-1]
	i.taken = i.taken[:len(i.taken)-1]
	cost, key := h.rand.Int64N(6), d.Key()
	less := d.Cost - cost
	var err error
	done, answered := i.asks(func() { err = i.Adjust(ctx, d, cost) })
	switch {
	case less > 0 && d.Degraded:
		i.own.give(key, less)
		h.without.give(key, less)
	case less > 0:
		if done {
			h.stored.give(key, less)
			h.byStore.give(key, less)
		}
		if answered {
			i.own.give(key, less)
		}
		if (err == nil) != answered {
			return fmt.Sprintf("a refund: answered %v, %v", answered, err)
		}
		return ""
	case less < 0:
		if done {
			h.stored[key] -= less
		}
		i.own[key] -= less
	}
	if err != nil {
		return fmt.Sprintf("adjusting %v to %d: %v", d, cost, err)
	}
	return ""
}

func (h *history) reset(ctx context.Context, i *modelled, key string) string {
	var err error
	done, answered := i.asks(func() { err = i.Reset(ctx, user(key)) })
	if done {
		h.stored[key], h.byStore[key] = 0, 0
	}
	h.without.give(key, i.own[key]) // so many of those at most
	i.own[key] = 0
	for _, o := range h.all { // a refund may take back hits that were charged since
		for j := 0; j < len(o.taken); j++ {
			if o.taken[j].Key() == key {
				o.taken = append(o.taken[:j], o.taken[j+1:]...)
				j--
			}
		}
	}
	if answered != (err == nil) || !answered != errors.Is(err, core.ErrDegraded) {
		return fmt.Sprintf("a reset: answered %v, %v", answered, err)
	}
	return ""
}

// nextWindow returns what is wrong at the end of a window.
func (h *history) nextWindow() string {
	for _, key := range modelKeys {
		if most := h.share * int64(len(h.all)); h.byStore[key] > h.quota || h.without[key] > most {
			return fmt.Sprintf("key %s: %d allowed by the store, at most %d; %d without it, at most %d", key, h.byStore[key], h.quota, h.without[key], most)
		}
	}
	time.Sleep(modelWindow)
	clear(h.stored)
	clear(h.byStore)
	clear(h.without)
	for _, i := range h.all {
		clear(i.own)
		i.taken = nil
	}
	return ""
}
