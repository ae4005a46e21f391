package resilient_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

const modelLease = 10 * time.Second

// leaseStep is one of a history of several instances.
type leaseStep struct{ kind, who, key, cost int }

const (
	linkToggles = iota // the store is away for an instance, or is back
	timePasses
	acquires
	losesReply // acquires, and the reply of the store is lost
	releases
	renews
	storeForgets // the server has been started again
)

var leaseHistory = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) leaseStep {
	kind := rapid.SampledFrom([]int{linkToggles, timePasses, acquires, acquires, acquires, losesReply, releases, releases, renews, storeForgets}).Draw(r, "kind")
	return leaseStep{kind, rapid.IntRange(0, 2).Draw(r, "who"), rapid.IntRange(0, 1).Draw(r, "key"), rapid.IntRange(1, 2).Draw(r, "cost")}
}), 30, 80)

// heldLease is what the model knows of a lease that an instance holds.
type heldLease struct {
	key   string
	cost  int64
	ends  time.Time // in the process
	asked bool      // the store may have it
	tried bool      // perhaps it was asked to renew it, and was away
	known bool      // the store has got it since the last outage
}

// leaseHolder is the model of an instance.
type leaseHolder struct {
	link  *flaky
	bound core.Bound
	down  bool
	held  map[uint64]*heldLease
	over  map[uint64]*heldLease // perhaps in the store, and held by nobody
}

// leaseWorld is the model of all.
type leaseWorld struct {
	values *values
	all    []*leaseHolder
	quota  int64
	limits int
	stored map[uint64]*heldLease // what the server has
	last   uint64
}

func (w *leaseWorld) used(of map[uint64]*heldLease, key string) (sum int64) {
	for _, l := range of {
		if l.key == key && l.ends.After(time.Now()) {
			sum += l.cost
		}
	}
	return sum
}

func (w *leaseWorld) store(lease uint64, l *heldLease) {
	w.stored[lease] = &heldLease{key: l.key, cost: l.cost, ends: time.Now().Add(modelLease)}
}

// noticed is called when an instance learns that the store is away.
func (h *leaseHolder) noticed() {
	for _, l := range h.held {
		l.known = false
	}
}

// told lets the store know the leases of a key, before it decides.
func (w *leaseWorld) told(h *leaseHolder, key string, answered bool) (asked bool) {
	now := time.Now()
	for id, l := range h.held {
		if l.key == key && !l.known && l.ends.After(now) {
			w.store(id, l)
			l.asked, asked = true, true
			l.known = answered
		}
	}
	if asked && !answered {
		return true
	}
	for id, l := range h.over {
		if l.key == key && l.ends.After(now) {
			delete(w.stored, id)
			asked = true
			if answered {
				delete(h.over, id)
			}
		}
	}
	return asked
}

func (w *leaseWorld) item(key string, lease uint64, cost int64) core.Item {
	return core.Item{Key: []byte(key), Lease: lease, Cost: cost, Results: make([]core.Result, w.limits)}
}

// acquire takes a slot, and compares the decision with the model's.
func (w *leaseWorld) acquire(t *testing.T, h *leaseHolder, key string, cost int64, loses bool) (want, got bool) {
	share := (w.quota + int64(len(w.all)) - 1) / int64(len(w.all))
	own := w.used(h.held, key)+cost <= share
	w.last++
	id, l := w.last, &heldLease{key: key, cost: cost, ends: time.Now().Add(modelLease)}
	switch {
	case h.down:
		h.noticed()
		want = own
	case loses:
		if telling := w.told(h, key, false); !telling {
			if l.asked = true; w.used(w.stored, key)+cost <= w.quota {
				w.store(id, l)
			}
			if !own {
				h.over[id] = l
			}
		}
		h.noticed()
		want = own
	default:
		w.told(h, key, true)
		l.asked, l.known = true, true
		if want = w.used(w.stored, key)+cost <= w.quota; want {
			w.store(id, l)
		}
	}
	if want {
		h.held[id] = l
	}
	h.link.late.Store(loses && !h.down)
	b := &core.Batch{Items: []core.Item{w.item(key, id, cost)}}
	if err := h.bound.Take(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	h.link.late.Store(false)
	if loses {
		time.Sleep(settled)
	}
	return want, b.Allowed
}

func (w *leaseWorld) release(t *testing.T, h *leaseHolder, id uint64) (wantErr, gotErr bool) {
	l := h.held[id]
	asked := l.asked || !l.ends.After(time.Now())
	if wantErr = asked && h.down; wantErr {
		h.noticed()
	} else if asked {
		delete(w.stored, id)
	}
	delete(h.held, id)
	err := h.bound.(core.Leaser).Release(t.Context(), &core.Batch{Items: []core.Item{w.item(l.key, id, l.cost)}})
	return wantErr || err != nil && l.tried && h.down, err != nil
}

func (w *leaseWorld) renew(t *testing.T, h *leaseHolder) (wantErr, gotErr bool) {
	if len(h.held) == 0 {
		return false, false
	}
	b := &core.Batch{}
	for id, l := range h.held {
		b.Items = append(b.Items, w.item(l.key, id, l.cost))
		if !l.ends.After(time.Now()) {
			l.asked = true
		}
		l.ends = time.Now().Add(modelLease)
		if l.tried = l.tried || h.down; !h.down {
			w.store(id, l)
			l.asked, l.known = true, true
		}
	}
	if h.down {
		h.noticed()
	}
	err := h.bound.(core.Leaser).Renew(t.Context(), b)
	return h.down, err != nil
}

// step makes one step, and returns what is wrong with it.
func (w *leaseWorld) step(t *testing.T, s leaseStep) string {
	h, key := w.all[s.who%len(w.all)], fmt.Sprint(s.key)
	switch s.kind {
	case linkToggles:
		if h.down = !h.down; h.down {
			h.link.fail(errRefused)
		} else {
			h.link.fail(nil)
			time.Sleep(settled)
		}
	case timePasses:
		time.Sleep(time.Duration(s.cost) * modelLease / 4)
	case storeForgets:
		w.values.forget()
		clear(w.stored)
		for _, h := range w.all { // each notices, as it loses its connection
			down := h.down
			h.link.fail(errRefused)
			h.down = true
			if _, err := w.renew(t, h); !err && len(h.held) > 0 {
				return "no error of a renewal"
			}
			if h.down = down; !down {
				h.link.fail(nil)
			}
		}
		time.Sleep(settled)
	case acquires, losesReply:
		if want, got := w.acquire(t, h, key, int64(s.cost), s.kind == losesReply); got != want {
			return fmt.Sprintf("a take of %d by instance %d: %v, want %v; store %d, own %d", s.cost, s.who, got, want, w.used(w.stored, key), w.used(h.held, key))
		}
	case releases:
		if ids := slices.Sorted(maps.Keys(h.held)); len(ids) > 0 {
			if want, got := w.release(t, h, ids[(s.key+s.cost)%len(ids)]); got != want {
				return fmt.Sprintf("a release fails: %v, want %v", got, want)
			}
		}
	case renews:
		if want, got := w.renew(t, h); got != want {
			return fmt.Sprintf("a renewal fails: %v, want %v", got, want)
		}
	}
	return ""
}

// Instances acquire, release and renew slots of one limit, while the store goes away for some of
// them, loses replies, and comes back empty.
func TestSlotsOfInstancesAgainstAModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		history, n := leaseHistory.Draw(r, "history"), rapid.IntRange(1, 3).Draw(r, "instances")
		quota, withRate := rapid.Int64Range(0, 6).Draw(r, "quota"), rapid.Bool().Draw(r, "with a rate")
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			rule := core.StoreRule{Name: "user", Limits: []core.Limit{{Name: "slots", Quota: quota, Window: modelLease, Algorithm: core.Leases}}}
			if withRate {
				rule.Limits = append(rule.Limits, fixed(1_000_000, 300*24*time.Hour))
			}
			w := &leaseWorld{values: &values{all: map[string]swapstore.Value{}}, quota: quota, limits: len(rule.Limits), stored: map[uint64]*heldLease{}}
			server := &shared{Store: core.Must(swapstore.New(w.values, swapstore.Config{}))}
			for range n {
				link := &flaky{Store: server, end: make(chan struct{})}
				b := core.Must(newStore(t, link, resilient.Config{Failures: 1, Instances: n}).Bind("l", []core.StoreRule{rule}))
				w.all = append(w.all, &leaseHolder{link: link, bound: b, held: map[uint64]*heldLease{}, over: map[uint64]*heldLease{}})
			}
			for i, s := range history {
				if wrong = w.step(t, s); wrong != "" {
					wrong = fmt.Sprintf("step %d, %+v: %s", i, s, wrong)
					return
				}
			}
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}
