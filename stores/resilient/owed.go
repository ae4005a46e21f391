package resilient

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
)

// owed keeps how many hits of which keys were admitted in the process while the
// store did not answer, for as long as these hits count. They are charged to the
// store when it answers again: by the next request for the key (see bound.settle)
// or in the background (see payer), whichever comes first.
type owed struct {
	*ledger
	now   func() int64
	names []string        // of the rules
	ids   []uint64        // of the rules, for asking
	lives []time.Duration // of each rule's hits
	rules []core.StoreRule
	local core.Bound // the counters of this process

	leases []int // of each rule, the index of its limit of leases, -1 if it has none
	shares []core.StoreRule
}

// ledger is what the versions of a limiter's rules have in common.
type ledger struct {
	asking *asking // which hits requests are asking the store for
	untold untold

	until atomic.Int64 // when the last hits are over, in microseconds; 0: there are none
	most  int          // keys

	mu     sync.Mutex
	bound  *bound // the latest version
	debts  map[owedKey]debt
	due    map[string]dueKeys   // by server: the keys that the payer is to pay
	paying map[owedKey]*payment // the keys whose hits are being charged
	giving map[owedKey]int      // by key: refunds and grants that are under way
}

// owedKey is a key of a rule. The rule is kept by name, because a Rebind changes
// the rules' places.
type owedKey struct {
	rule, key string
	hashed    bool // key is a hash
}

// maxOwedKey is the length of the longest key that is kept as it is, in bytes. Of
// a longer one the hash is kept, which bounds the memory; the payer cannot charge
// its hits, but the next request for the key can.
const maxOwedKey = 256

func (o *owed) key(it *core.Item) owedKey {
	k := owedKey{rule: o.names[it.Rule]}
	if k.hashed = len(it.Key) > maxOwedKey; k.hashed {
		sum := sha256.Sum256(it.Key)
		k.key = string(sum[:])
	} else {
		k.key = string(it.Key)
	}
	return k
}

// debt is how many hits of a key the store may not know of. There may be none: see
// noteDenied.
type debt struct {
	// Hits that the store was not asked for, and hits that it may have charged
	// although no answer came.
	sure, unsure int64
	// Later hits, which the process and the store have both charged: while the debt
	// was being paid, other requests went on.
	known int64
	until int64   // when they count no more
	due   dueKeys // the set that has the key; nil: none
	plan  *plan   // nil: the limits' own quotas
}

func (d debt) hits() int64 { return d.sure + d.unsure }

type dueKeys map[owedKey]struct{}

// payment is a charge of a key's hits that is under way.
type payment struct {
	reset bool          // the key has been reset since the payment began
	known int64         // see debt
	later int64         // hits that this process has charged meanwhile, and that are owed
	back  int64         // hits of the claim that have been refunded in this process meanwhile
	done  chan struct{} // closed at its end
}

// claim is a debt that one caller charges to the store.
type claim struct {
	owedKey
	debt
	name    []byte  // the key
	index   int     // of the rule
	used    []int64 // how many hits this process counts in each limit: see bound.count
	back    int64   // see payment; when used was counted
	asked   bool    // the store was asked for a charge, and may have made it
	payment *payment
}

// newOwed returns the debts of a ledger as the versions of a limiter's rules see them.
func newOwed(l *ledger, now func() int64, rules, shares []core.StoreRule, local core.Bound) *owed {
	o := &owed{ledger: l, now: now, rules: rules, shares: shares, local: local}
	for _, r := range rules {
		life, lease := time.Millisecond, limits.Lease(r.Limits)
		for i, l := range r.Limits {
			if i != lease {
				life = max(life, l.Lifetime())
			}
		}
		o.leases = append(o.leases, lease)
		o.names, o.ids, o.lives = append(o.names, r.Name), append(o.ids, l.asking.rule(r.Name)), append(o.lives, life)
	}
	return o
}

// counts reports whether a rule has a limit that counts hits.
func (o *owed) counts(rule int) bool { return o.leases[rule] < 0 || len(o.rules[rule].Limits) > 1 }

// note adds the hits of a batch that was admitted in the process. asked means
// that the store was asked for them and may have charged them. note ends what
// ask has begun.
func (o *owed) note(where Locator, batch *core.Batch, asked bool, own *mirror) {
	for i := range own.items {
		it := &own.items[i]
		if it.Cost == 0 {
			continue
		}
		server := ""
		if where != nil {
			server = where.ServerOf(it.Rule, it.Key)
		}
		d := debt{sure: hits(it), until: o.ends(it), plan: newPlan(o.rules[it.Rule].Limits, batch.Items[i].Quotas)}
		if asked {
			d.sure, d.unsure = 0, d.sure
		}
		k := o.key(it)
		o.change(it, own.asks.ended(hits(it)), func() {
			if !o.counts(it.Rule) {
				return
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.add(k, d, server, true, it.At)
			if p := o.paying[k]; p != nil {
				p.later += hits(it)
			}
		})
	}
	own.asks = asksNothing
}

// ends returns when an item's hits count no more. What was charged above the quota
// counts for longer.
func (o *owed) ends(it *core.Item) int64 {
	end := it.At + o.lives[it.Rule].Microseconds()
	for i := range it.Results {
		end = max(end, it.At+it.Results[i].ResetAfter.Microseconds())
	}
	return end
}

// none reports whether no key has such hits. It takes no lock, because nearly every
// request asks it.
func (o *owed) none() bool {
	until := o.until.Load()
	return until == 0 || o.now() > until
}

// has reports whether an item's key has such hits, or they are being charged.
func (o *owed) has(item *core.Item) bool {
	if item.Cost == 0 || o.none() {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.key(item)
	return o.paying[k] != nil || o.debts[k].until > o.now()
}

// claim gives the hits of an item's key to one caller. That caller charges them
// to the store and then calls paid. claim returns nil if there are no hits,
// if another caller has claimed them, or while hits of the key are given back.
func (o *owed) claim(item *core.Item) *claim {
	if item.Cost == 0 || o.none() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claimKey(o.key(item), item.Key, item.Rule, o.now())
}

// claimKey is claim for a key of the rule with this index. The ledger is locked.
func (l *ledger) claimKey(k owedKey, name []byte, index int, now int64) *claim {
	if _, found := l.debts[k]; !found || l.inUse(k) {
		return nil
	}
	d := l.remove(k)
	if d.until <= now {
		return nil
	}
	c := &claim{owedKey: k, debt: d, name: name, index: index, payment: &payment{known: d.known, done: make(chan struct{})}}
	l.paying[k] = c.payment
	return c
}

// paid ends a claim. After a failure the key still owes the hits; if the store
// was asked to charge them, they are noted as hits that it may know of. due
// means that the payer tries again.
func (o *owed) paid(c *claim, server string, failed, due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.paying, c.owedKey)
	close(c.payment.done)
	if !failed || c.payment.reset {
		return
	}
	d := debt{sure: c.sure, unsure: c.unsure, known: c.payment.known, until: c.until, plan: c.plan}
	d.giveBack(c.payment.back)
	if c.asked {
		d.sure, d.unsure = 0, d.hits()
	}
	if newer, found := o.debts[c.owedKey]; found {
		d.plan = newer.plan
	}
	o.add(c.owedKey, d, server, due, o.now())
}

// isReset reports whether a claim's key has been reset since it was claimed.
func (o *owed) isReset(c *claim) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return c.payment.reset
}

// know adds to the hits of an item's key that the process and the store have both
// charged while the key owed others.
func (o *owed) know(it *core.Item) {
	k := o.key(it)
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.paying[k]; p != nil {
		p.known += hits(it)
	} else if d, found := o.debts[k]; found {
		d.known += hits(it)
		o.debts[k] = d
	}
}

// forget forgets the hits of a batch's keys. It returns the payments of these
// keys that are under way: a charge that has been sent may still be made.
func (o *owed) forget(batch *core.Batch) (underway []*payment) {
	if o.none() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range batch.Items {
		it := &batch.Items[i]
		k := o.key(it)
		o.remove(k)
		if p := o.paying[k]; p != nil {
			p.reset = true
			underway = append(underway, p)
		}
	}
	return underway
}
