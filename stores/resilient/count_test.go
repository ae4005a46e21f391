package resilient

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// gone is a store that nothing reaches if down.
type gone struct {
	core.Bound
	down bool
}

func (g *gone) Take(ctx context.Context, batch *core.Batch) error {
	if g.down {
		return &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	return g.Bound.Take(ctx, batch)
}

// peeked calls before and after around each look at the counts of a Bound.
type peeked struct {
	core.Bound
	looks         int
	before, after func(look int)
}

func (p *peeked) Charge(ctx context.Context, batch *core.Batch) error {
	if batch.Items[0].Cost > 0 {
		return p.Bound.Charge(ctx, batch)
	}
	p.looks++
	p.before(p.looks)
	defer p.after(p.looks)
	return p.Bound.Charge(ctx, batch)
}

// A key owes three hits, and other requests for it come while they are counted.
// Only the three are counted, wherever the others are.
func TestWhatIsCountedForAPayment(t *testing.T) {
	type during struct {
		t      *testing.T
		b      *bound
		store  *gone
		counts *peeked
	}
	at := func(look int, do func()) func(int) {
		return func(n int) {
			if n == look {
				do()
			}
		}
	}
	for _, row := range []struct {
		name  string
		come  func(d during)
		used  int64
		known int64
	}{
		{"nothing else", func(during) {}, 3, 0},
		{"a hit that the store has charged", func(d during) {
			d.store.down = false
			hit(d.t, d.b)
		}, 4, 1},
		{"a hit that is owed too", func(d during) { hit(d.t, d.b) }, 3, 0},
		{"a hit that the store is asked for", func(d during) { own(d.t, d.b) }, 3, 0},
		{"a hit that the store is asked for between two looks", func(d during) {
			d.counts.before = at(1, func() { own(d.t, d.b) })
		}, 3, 0},
		{"a hit that is denied by the store, and one that comes after it", func(d during) {
			denied := own(d.t, d.b)
			d.counts.before = at(1, func() {
				if err := d.b.local.Refund(context.Background(), &denied.batch); err != nil {
					d.t.Error(err)
				}
				d.b.owed.answered(denied)
			})
			d.counts.after = at(1, func() { own(d.t, d.b) })
		}, 3, 0},
		{"a hit that this process is charging", func(d during) {
			m := charging(d.t, d.b)
			d.counts.before = at(2, func() { d.b.owed.decided(m) })
		}, 3, 0},
		// It may be counted or not: too many are better than too few.
		{"a hit that this process is charging for long", func(d during) { charging(d.t, d.b) }, 4, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := core.Must(New(core.Must(core.NewMemory(core.MemoryConfig{})), Config{Failures: 1000, Log: slog.New(slog.DiscardHandler)}))
			defer func() { _ = s.Close() }()
			s.payer.close() // the payments are made here
			l, err := s.Bind("l", []core.StoreRule{{Name: "user", Limits: []core.Limit{{Quota: 100, Window: time.Hour}}}})
			if err != nil {
				t.Fatal(err)
			}
			b := l.(*bound)
			store := &gone{Bound: b.inner, down: true}
			b.inner = store
			for range 3 {
				hit(t, b)
			}
			never := func(int) {}
			counts := &peeked{Bound: b.local, before: never, after: never}
			b.local = counts
			c := b.owed.claim(&newHit().Items[0])
			if c == nil || c.sure != 3 {
				t.Fatalf("%+v is owed, want 3 hits", c)
			}
			row.come(during{t, b, store, counts})
			if err := b.count(context.Background(), c); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.used, []int64{row.used}) || c.known != row.known {
				t.Errorf("%d hits counted, %d known to the store, want %d, %d", c.used, c.known, row.used, row.known)
			}
		})
	}
}

func newHit() *core.Batch {
	return &core.Batch{Items: []core.Item{{Key: []byte("alice"), Cost: 1, Results: make([]core.Result, 1)}}}
}

func hit(t *testing.T, b *bound) {
	t.Helper()
	batch := newHit()
	if err := b.Take(context.Background(), batch); err != nil || !batch.Allowed {
		t.Fatal(batch.Allowed, err)
	}
}

// own returns a hit that the process has charged, and that the store is asked for.
func own(t *testing.T, b *bound) *mirror {
	m := b.newMirror(newHit())
	if err := b.takeOwn(context.Background(), m); err != nil {
		t.Error(err)
	}
	return m
}

// charging returns a hit that the process has charged, and has not said so.
func charging(t *testing.T, b *bound) *mirror {
	m := b.newMirror(newHit())
	b.owed.ask(m)
	if err := b.local.Take(context.Background(), &m.batch); err != nil {
		t.Error(err)
	}
	return m
}

// A limit is not charged with hits of which its window has ended, nor with hits
// that the store has charged since.
func TestWhatALimitOwes(t *testing.T) {
	b := &bound{rules: []core.StoreRule{{Limits: []core.Limit{{Quota: 10, Window: time.Minute}}}}}
	b.gauges.rules = newGauges(b.rules)
	for _, row := range []struct {
		sure, used, known, stored int64
		want                      int64
	}{
		{5, 5, 0, 0, 5},
		{5, 5, 0, 3, 5},  // others have used three
		{5, 5, 0, 7, 5},  // they were admitted, and are charged above the quota
		{0, 5, 0, 2, 3},  // the store has lost three
		{0, 12, 0, 7, 3}, // it has lost five, and three fit
		{2, 12, 0, 7, 3},
		{4, 12, 0, 7, 4}, // of those that it has lost, one more must be charged
		{5, 0, 0, 0, 0},  // the window has ended
		{5, 2, 2, 2, 0},  // as before, and two have come since
		{0, 4, 0, 1, 3},  // the store has lost three
		{2, 6, 1, 1, 5},  // it has lost three that it knew
		{5, 2, 4, 10, 0}, // known in a window that has ended
	} {
		c := &claim{debt: debt{sure: row.sure, known: row.known}, used: []int64{row.used}}
		byLimit, together := b.owes(c, []core.Result{{Remaining: core.MaxQuota - row.stored}})
		if byLimit[0].hits != row.want || together.hits != row.want {
			t.Errorf("%+v: %+v, %+v together", row, byLimit[0], together)
		}
	}
}

// What the store has charged during a payment that fails is known to the next one.
func TestAFailedPaymentKeepsWhatIsKnown(t *testing.T) {
	s := core.Must(New(core.Must(core.NewMemory(core.MemoryConfig{})), Config{}))
	defer func() { _ = s.Close() }()
	o := newOwed(newLedger(10), s.now, []core.StoreRule{{Name: "user", Limits: []core.Limit{core.PerHour(100)}}}, nil, nil)
	it := &newHit().Items[0]
	it.At = s.now()
	o.note(nil, &core.Batch{Items: []core.Item{*it}}, false, &mirror{items: []core.Item{*it}})
	for _, want := range []int64{0, 1, 2} {
		c := o.claim(it)
		if c == nil || c.known != want {
			t.Fatalf("%+v, want a claim of which the store knows %d", c, want)
		}
		o.know(it)
		o.paid(c, "", true, true)
	}
	o.know(it) // between two payments
	if c := o.claim(it); c == nil || c.known != 4 {
		t.Errorf("%+v, want a claim of which the store knows 4", c)
	}
}

// Nothing stays noted of requests that have ended.
func TestNothingIsKeptOfEndedRequests(t *testing.T) {
	s := core.Must(New(core.Must(core.NewMemory(core.MemoryConfig{})), Config{}))
	defer func() { _ = s.Close() }()
	l := core.Must(core.New(core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(1)}}}}))
	for i := range 300 {
		if _, err := l.Take(context.Background(), 1, core.Hit{Rule: "user", Key: string(rune('a' + i%100))}); err != nil {
			t.Fatal(err)
		}
	}
	asking := s.payer.ledgers[0].asking
	for i := range asking.shards {
		if n := len(asking.shards[i].keys); n != 0 {
			t.Fatalf("%d keys are noted", n)
		}
	}
}
