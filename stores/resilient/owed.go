package resilient

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// owed keeps how many hits of which keys were admitted in the process while the
// store did not answer, for as long as these hits count. They are charged to the
// store when it answers again: see bound.settle.
type owed struct {
	*ledger
	// Hits that the store was not asked for, and hits that it may have charged
	// although no answer came.
	sure, unsure core.Bound
	now          func() int64
	names        []string        // of the rules
	lives        []time.Duration // of each rule's hits
}

// ledger is what the versions of a limiter's rules have in common.
type ledger struct {
	until atomic.Int64 // when the last hits are over, in microseconds; 0: there are none
	mu    sync.Mutex   // makes a step of several operations on the marks one
	// paying has the keys whose hits are being charged. The value is true if the
	// key has been reset meanwhile.
	paying map[string]bool
}

// debt is how many hits of a key the store may not know of.
type debt struct{ sure, unsure int64 }

// owedRules are the rules under which keys are remembered: a key that has such hits
// has a mark with their number. A mark lasts a quarter longer than the hits, so
// that it has to be made anew only now and then.
func owedRules(rules []core.StoreRule) (marks []core.StoreRule, lives []time.Duration) {
	for _, r := range rules {
		life := time.Millisecond
		for _, l := range r.Limits {
			life = max(life, l.Guarantees().Lifetime)
		}
		window := min(life+life/4, core.MaxWindow).Truncate(time.Microsecond)
		marks = append(marks, core.StoreRule{Name: r.Name, Limits: []core.Limit{
			{Name: r.Name, Quota: core.MaxQuota, Window: window, Algorithm: core.FixedWindow},
		}})
		lives = append(lives, min(life, window))
	}
	return marks, lives
}

func (s *Store) bindOwed(limiter string, rules []core.StoreRule) (*owed, error) {
	marks, lives := owedRules(rules)
	sure, err := s.marks.Bind(limiter, marks)
	if err != nil {
		return nil, err
	}
	unsure, err := s.marks.Bind(limiter+"\x00unsure", marks) // no limiter has such a name
	if err != nil {
		return nil, err
	}
	return &owed{&ledger{paying: map[string]bool{}}, sure, unsure, s.now, names(rules), lives}, nil
}

func (o *owed) rebind(rules []core.StoreRule) (*owed, error) {
	marks, lives := owedRules(rules)
	sure, err := o.sure.Rebind(marks)
	if err != nil {
		return nil, err
	}
	unsure, err := o.unsure.Rebind(marks)
	if err != nil {
		return nil, err
	}
	return &owed{o.ledger, sure, unsure, o.now, names(rules), lives}, nil
}

func names(rules []core.StoreRule) (names []string) {
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// note adds the hits of a batch that was admitted in the process. asked says that
// the store was asked for them and may have charged them.
func (o *owed) note(batch *core.Batch, asked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range batch.Items {
		it := &batch.Items[i]
		if asked {
			o.add(o.unsure, it, it.Cost)
		} else {
			o.add(o.sure, it, it.Cost)
		}
	}
}

// add adds hits of an item's key. The ledger is locked.
func (o *owed) add(marks core.Bound, item *core.Item, hits int64) {
	if hits == 0 {
		return
	}
	m := markOf(item)
	defer m.free()
	it := &m.items[0]
	take := func(hits int64) {
		it.Cost = min(hits, core.MaxQuota)
		_ = marks.Take(context.Background(), &m.batch) // fails if closed: nothing counts here any more
	}
	take(hits)
	if r := it.Results[0]; r.ResetAfter < o.lives[it.Rule] {
		// The mark would end before the hits do: it is made anew.
		all := core.MaxQuota - r.Remaining
		_ = marks.Reset(context.Background(), &m.batch)
		take(all)
	}
	end := it.At + it.Results[0].ResetAfter.Microseconds()
	for was := o.until.Load(); end > was && !o.until.CompareAndSwap(was, end); was = o.until.Load() {
	}
}

// markOf returns a batch with the mark of an item's key.
func markOf(item *core.Item) *mirror {
	m := newMirror(&core.Batch{Items: []core.Item{*item}})
	m.single()
	return m
}

// none reports that no key has such hits, which is the rule, without a lock.
func (o *owed) none() bool {
	until := o.until.Load()
	return until == 0 || o.now() > until
}

// count returns the hits of an item's key. The ledger is locked.
func (o *owed) count(marks core.Bound, item *core.Item) int64 {
	m := markOf(item)
	defer m.free()
	m.items[0].Cost, m.batch.Peek = 0, true
	if marks.Take(context.Background(), &m.batch) != nil {
		return 0
	}
	return core.MaxQuota - m.items[0].Results[0].Remaining
}

// has reports whether an item's key has such hits, or they are being charged.
func (o *owed) has(item *core.Item) bool {
	if item.Cost == 0 || o.none() {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, paying := o.paying[o.name(item)]; paying {
		return true
	}
	return o.count(o.sure, item) > 0 || o.count(o.unsure, item) > 0
}

func (o *owed) name(item *core.Item) string { return o.names[item.Rule] + "\x00" + string(item.Key) }

// claim hands the hits of an item's key to one caller, who is to charge them to
// the store and to call paid then. ok is false if there are none, or if somebody
// else is at it.
func (o *owed) claim(item *core.Item) (d debt, ok bool) {
	if item.Cost == 0 || o.none() {
		return d, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	name := o.name(item)
	if _, paying := o.paying[name]; paying {
		return d, false
	}
	d = debt{o.count(o.sure, item), o.count(o.unsure, item)}
	if d == (debt{}) {
		return d, false
	}
	o.drop(item)
	o.paying[name] = false
	return d, true
}

// paid ends what claim has begun. If the store failed, it may have charged the
// hits: they are owed on, as hits that it may know of.
func (o *owed) paid(item *core.Item, d debt, failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := o.name(item)
	reset := o.paying[name]
	delete(o.paying, name)
	if failed && !reset {
		o.add(o.unsure, item, d.sure+d.unsure)
	}
}

// drop forgets the hits of an item's key. The ledger is locked.
func (o *owed) drop(item *core.Item) {
	m := markOf(item)
	defer m.free()
	_ = o.sure.Reset(context.Background(), &m.batch)
	_ = o.unsure.Reset(context.Background(), &m.batch)
}

// forget forgets the hits of a batch's keys.
func (o *owed) forget(batch *core.Batch) {
	if o.none() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range batch.Items {
		it := &batch.Items[i]
		o.drop(it)
		if name := o.name(it); len(o.paying) > 0 {
			if _, paying := o.paying[name]; paying {
				o.paying[name] = true
			}
		}
	}
}
