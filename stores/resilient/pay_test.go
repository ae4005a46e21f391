package resilient

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// scarce is a store whose keys have some room, which others may take between two
// charges. It fails the test if it is asked to charge nothing.
type scarce struct {
	core.Bound
	t       *testing.T
	room    map[string]int64
	others  map[string]int64 // what they take, once, after a charge of the key was denied
	charged map[string]int64
	asked   int
}

func (s *scarce) Take(_ context.Context, batch *core.Batch) error {
	s.asked++
	batch.Allowed = true
	for i := range batch.Items {
		it := &batch.Items[i]
		if it.Cost <= 0 {
			s.t.Errorf("a charge of %d hits of %s", it.Cost, it.Key)
		}
		batch.Allowed = batch.Allowed && it.Cost <= s.room[string(it.Key)]
	}
	for i := range batch.Items {
		it := &batch.Items[i]
		key := string(it.Key)
		if batch.Allowed {
			s.room[key] -= it.Cost
			s.charged[key] += it.Cost
		}
		it.Results[0] = core.Result{Allowed: it.Cost <= s.room[key], Remaining: s.room[key]}
		if !batch.Allowed {
			s.room[key] -= s.others[key]
			delete(s.others, key)
		}
	}
	return nil
}

// A charge of several keys that does not fit is made for each key by itself, with
// as many hits as fit, also if others take some at the same moment. Nothing is
// charged to keys that owe nothing, and the store is not asked for them.
func TestWhatDoesNotFitIsChargedInPart(t *testing.T) {
	owes := map[string]int64{"all": 3, "some": 5, "none": 2, "nothing": 0, "less": 6}
	for _, alone := range []bool{false, true} {
		store := &scarce{
			t: t, charged: map[string]int64{},
			room:   map[string]int64{"all": 9, "some": 2, "none": 0, "nothing": 9, "less": 4},
			others: map[string]int64{"less": 1},
		}
		b := &bound{Store: &Store{config: Config{Timeout: time.Minute}}, owed: &owed{ledger: newLedger(10)}}
		claims, dues := []*claim{}, []due{}
		for _, key := range []string{"none", "less", "nothing", "all", "some"} {
			claims, dues = append(claims, &claim{name: []byte(key), payment: &payment{}}), append(dues, due{hits: owes[key], results: 1})
		}
		if alone {
			for i := range claims {
				if err := b.charge(t.Context(), store, claims[i:i+1], dues[i:i+1]); err != nil {
					t.Fatal(err)
				}
			}
		} else if err := b.charge(t.Context(), store, claims, dues); err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(store.charged), fmt.Sprint(map[string]int64{"all": 3, "some": 2, "less": 3}); got != want {
			t.Errorf("alone %v: charged %s, want %s", alone, got, want)
		}
		for i, c := range claims {
			if asked := dues[i].hits > 0; c.asked != asked {
				t.Errorf("alone %v: the store was asked for %s: %v", alone, c.name, c.asked)
			}
		}
	}
	store := &scarce{t: t}
	b := &bound{Store: &Store{}, owed: &owed{ledger: newLedger(10)}}
	if err := b.charge(t.Context(), store, []*claim{{payment: &payment{}}}, []due{{}}); err != nil || store.asked != 0 {
		t.Errorf("the store was asked %d times for no hits: %v", store.asked, err)
	}
}

// Hits that a store was not asked for and hits that it may have charged add up.
// Those of a payment that failed after it had asked are all of the second kind.
func TestHitsAddUp(t *testing.T) {
	l := newLedger(10)
	o := &owed{ledger: l, now: func() int64 { return 1 }}
	k := owedKey{rule: "user", key: "alice"}
	for range 2 {
		l.add(k, debt{sure: 2, unsure: 3, known: 1, until: 100}, "", true, 1)
	}
	if d := l.debts[k]; d.sure != 4 || d.unsure != 6 || d.known != 2 || d.hits() != 10 {
		t.Errorf("%+v, %d hits; want 4, 6 and 2, 10 hits", d, d.hits())
	}
	c := l.claimKey(k, []byte("alice"), 0, 1)
	c.asked = true
	o.paid(c, "", true, true)
	if d := l.debts[k]; d.sure != 0 || d.unsure != 10 {
		t.Errorf("after a failed payment %+v, want 10 hits that the store may know of", d)
	}
}

// Hits count until a time and not at it: they are not added to, not claimed, and
// make room.
func TestHitsThatAreOver(t *testing.T) {
	k := owedKey{rule: "user", key: "alice"}
	with := func() *ledger {
		l := newLedger(10)
		l.add(k, debt{sure: 2, until: 100}, "", true, 1)
		return l
	}
	for now, count := range map[int64]bool{99: true, 100: false, 101: false} {
		l := with()
		if l.add(k, debt{sure: 1, until: 200}, "", true, now); (l.debts[k].sure == 3) != count {
			t.Errorf("at %d: %d hits", now, l.debts[k].sure)
		}
		l = with()
		if l.makeRoom(now, 1); (len(l.debts) == 1) != count {
			t.Errorf("at %d: %d keys are left", now, len(l.debts))
		}
		l = with()
		if (l.claimKey(k, nil, 0, now) != nil) != count {
			t.Errorf("at %d: claimed %v, want %v", now, !count, count)
		}
	}
}

// What is done under the ledger's lock is bounded, however many keys there are.
func TestLooksAtALedgerAreBounded(t *testing.T) {
	const many = 4 * payLook
	l := newLedger(2 * many)
	for i := range many {
		l.add(owedKey{rule: "gone", key: fmt.Sprint(i)}, debt{sure: 1, until: 100 + many}, "", true, 1)
	}
	l.serve(&bound{Store: &Store{now: func() int64 { return 1 }}, owed: &owed{ledger: l}})
	if _, claims, more := l.pick(""); len(claims) != 0 || !more || len(l.debts) != many-payLook {
		t.Errorf("%d claims, more: %v; %d of %d keys of a rule that is gone are left, want %d", len(claims), more, len(l.debts), many, many-payLook)
	}
	before := len(l.debts)
	if l.makeRoom(100+many, 1); before-len(l.debts) != 8 {
		t.Errorf("%d keys have been removed to make room, want 8", before-len(l.debts))
	}
}

// A server without due keys is none at which something is due, and the payer ends.
func TestThePayerEndsWhenNothingIsDue(t *testing.T) {
	l, k := newLedger(10), owedKey{rule: "user", key: "alice"}
	p := newPayer(&Config{})
	p.add(l)
	p.stop = func() {}
	l.add(k, debt{sure: 1, until: 100}, "a", true, 1)
	if servers := l.servers(); !slices.Equal(servers, []string{"a"}) || p.ended() {
		t.Errorf("keys are due at %q; has the payer ended?", servers)
	}
	l.remove(k)
	if servers := l.servers(); len(servers) != 0 || !p.ended() || p.stop != nil {
		t.Errorf("no key is due, and the servers are %q; the payer has not ended", servers)
	}
}
