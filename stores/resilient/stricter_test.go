package resilient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// bindOne returns a Bound of one rule with one limit, whose payments a test makes
// itself.
func bindOne(t *testing.T, quota int64) *bound {
	t.Helper()
	s := core.Must(New(core.Must(core.NewMemory(core.MemoryConfig{})), Config{Failures: 1000, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(func() { _ = s.Close() })
	s.payer.close()
	b, err := s.Bind("l", []core.StoreRule{{Name: "user", Limits: []core.Limit{{Quota: quota, Window: time.Hour}}}})
	if err != nil {
		t.Fatal(err)
	}
	return b.(*bound)
}

// says is a store that answers each operation with a result or an error.
type says struct {
	core.Bound
	result  core.Result
	err     error
	unknown bool // a cache has answered, which does not know the result
}

func (s says) Take(_ context.Context, batch *core.Batch) error {
	batch.Allowed = s.result.Allowed
	for i := range batch.Items {
		batch.Items[i].Results[0], batch.Items[i].Unknown = s.result, s.unknown
	}
	return s.err
}

// A key that has used up its quota in an outage is denied. The client is told the
// longer wait of the store's and the process's, or the smaller rest if the waits are
// equal; if the store does not answer, the process's.
func TestWhatADeniedKeyOfAnOutageIsTold(t *testing.T) {
	result := func(remaining int64, wait time.Duration) core.Result {
		return core.Result{Allowed: wait == 0, Remaining: remaining, RetryAfter: wait}
	}
	for _, c := range []struct {
		own, store core.Result
		err        error
		want       core.Result
	}{
		{result(0, 5), result(0, 3), nil, result(0, 5)},
		{result(0, 3), result(0, 5), nil, result(0, 5)},
		{result(7, 3), result(1, 5), nil, result(1, 5)},
		{result(1, 5), result(7, 3), nil, result(1, 5)},
		{result(1, 5), result(2, 5), nil, result(1, 5)},
		{result(2, 5), result(1, 5), nil, result(1, 5)},
		{core.Result{ResetAfter: 1, RetryAfter: 5}, core.Result{ResetAfter: 2, RetryAfter: 5}, nil, core.Result{ResetAfter: 2, RetryAfter: 5}},
		{result(0, 5), result(9, 0), nil, result(0, 5)},
		{result(0, 3), result(0, 5), errors.New("down"), result(0, 3)},
	} {
		b := bindOne(t, 10)
		b.inner = says{b.inner, c.store, c.err, false}
		batch := newHit()
		b.owed.add(b.owed.key(&batch.Items[0]), debt{sure: 1, until: b.now() + 1_000_000}, "", false, b.now())
		own := b.newMirror(batch)
		own.items[0].Results[0] = c.own
		tickets, err := b.circuits.allow(b.where, batch)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.stricter(t.Context(), batch, own, &tickets); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if got := batch.Items[0].Results[0]; got != c.want || batch.Allowed || !batch.Degraded || batch.Peek {
			t.Errorf("the process %+v, the store %+v, %v: %+v, want %+v", c.own, c.store, c.err, got, c.want)
		}
	}
}

// If a cache denies a key without knowing its result, the client is told the process's.
func TestWhatACacheDoesNotKnowOfADeniedKey(t *testing.T) {
	b := bindOne(t, 10)
	b.inner = says{b.inner, core.Result{}, nil, true}
	batch := newHit()
	own, want := b.newMirror(batch), core.Result{RetryAfter: 5}
	own.items[0].Results[0] = want
	tickets, err := b.circuits.allow(b.where, batch)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stricter(t.Context(), batch, own, &tickets); err != nil {
		t.Error(err)
	}
	if it := &batch.Items[0]; it.Unknown || it.Results[0] != want {
		t.Errorf("got %+v, unknown: %t, want %+v", it.Results[0], it.Unknown, want)
	}
}

// A hit for which the process has no room any more, because the store has allowed
// others that it missed, is decided anew if the store does not answer.
func TestAHitIsDecidedAnewAfterHitsThatWereMissed(t *testing.T) {
	b := bindOne(t, 1)
	own := own(t, b)
	s, id := b.owed.asking.shard(b.owed.ids[0], []byte("alice"))
	s.keys[s.find(id)].missed = 1 // a hit of another request, which the store has allowed
	batch := newHit()
	if err := b.meanwhile(t.Context(), batch, own, errors.New("down"), true); err != nil {
		t.Fatal(err)
	}
	if r := batch.Items[0].Results[0]; batch.Allowed || r.Allowed || r.RetryAfter == 0 {
		t.Errorf("allowed %v, %+v, although the store has allowed the only hit to another request", batch.Allowed, r)
	}
}

// What a process misses of a key matters to hits of the key, and not to a look at
// it.
func TestALookMissesNothing(t *testing.T) {
	b := bindOne(t, 10)
	own := own(t, b)
	s, id := b.owed.asking.shard(b.owed.ids[0], []byte("alice"))
	s.keys[s.find(id)].missed = 1
	if !b.owed.misses(own) {
		t.Error("a hit that was missed is not noticed")
	}
	own.items[0].Cost = 0
	if b.owed.misses(own) {
		t.Error("a look at the key misses a hit")
	}
	own.items[0].Cost = 1
}

// The debt of a key that has used its quota up is noted once its former hits are
// over.
func TestAUsedUpKeyIsNotedAgain(t *testing.T) {
	b := bindOne(t, 10)
	it := &newHit().Items[0]
	for at, want := range map[int64]bool{99: false, 100: true, 101: true} {
		b.owed.debts = map[owedKey]debt{b.owed.key(it): {sure: 1, until: 100}}
		it.At, it.Results[0].ResetAfter = at, time.Second
		if got := b.owed.noteUsedUp(nil, it); got != want {
			t.Errorf("at %d: noted %v, want %v", at, got, want)
		}
	}
}

// If the payment of several keys fails and the store may have charged them, all
// their hits are ones that the store may know of.
func TestAPaymentOfSeveralKeysThatFails(t *testing.T) {
	b := bindOne(t, 10)
	b.inner = says{b.inner, core.Result{Allowed: true}, fmt.Errorf("damaged: %w", core.ErrDamaged), false}
	var claims []*claim
	for i := range 2 {
		k := owedKey{rule: "user", key: fmt.Sprint(i)}
		b.owed.add(k, debt{sure: 2, unsure: 3, until: b.now() + 1_000_000}, "", true, b.now())
		c := b.owed.claimKey(k, []byte(k.key), 0, b.now())
		c.asked = true
		claims = append(claims, c)
	}
	if err := b.payDue(t.Context(), claims); err != nil {
		t.Errorf("the store has answered: %v", err)
	}
	for _, c := range claims {
		if d := b.owed.debts[c.owedKey]; d.sure != 0 || d.unsure != 5 {
			t.Errorf("key %s: %+v, want 5 hits that the store may know of", c.key, d)
		}
	}
}

// byKey says that each key is on a server of its name.
type byKey struct{}

func (byKey) ServerOf(_ int, key []byte) string { return string(key) }

// An operation has one ticket for each server, however many of its keys are on it.
func TestOneTicketForEachServer(t *testing.T) {
	c := newCircuits(&Config{Retry: time.Second, Failures: 1})
	batch := &core.Batch{}
	for _, server := range []string{"a", "b", "b", "c", "a", "c", "d"} {
		batch.Items = append(batch.Items, core.Item{Key: []byte(server)})
	}
	tickets, err := c.allow(byKey{}, batch)
	if err != nil {
		t.Fatal(err)
	}
	got := tickets.first.circuit.server
	for _, one := range tickets.more {
		got += one.circuit.server
	}
	if got != "abcd" {
		t.Errorf("tickets for %q, want one for each of a, b, c and d", got)
	}
	tickets.done(nil, false)
}

// A store that has had its time when the caller's deadline ended was too slow.
func TestWhenAStoreIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bound{Store: &Store{circuits: newCircuits(&Config{Retry: time.Second, Failures: 1})}}
		for took, want := range map[time.Duration]bool{patience - 1: false, patience: true, patience + 1: true} {
			ctx, cancel := context.WithTimeout(t.Context(), took)
			began := time.Now()
			<-ctx.Done()
			if got := b.tooSlow(ctx, began); got != want {
				t.Errorf("after %v: %v, want %v", took, got, want)
			}
			cancel()
		}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		time.Sleep(time.Minute)
		cancel()
		if b.tooSlow(ctx, began) {
			t.Error("a caller that gave up is a failure of the store")
		}
	})
}
