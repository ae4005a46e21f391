package resilient

import (
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// slots are the leases that this process holds, by key: those that the store has given, and
// those of an outage. When the store answers again, it is told of the leases of a key before
// it decides on that key, as it may have lost them or never had them.
type slots struct {
	mu   sync.Mutex
	keys map[owedKey]*slotsOf
}

// slotsOf are the leases of one key.
type slotsOf struct {
	leases  map[uint64]*slot
	telling bool // a caller tells the store of them
}

// slot is one lease.
type slot struct {
	cost  int64
	ends  int64  // when it ends if it is not renewed
	known uint64 // outages of the server when the store last had it, plus 1; 0: it may never have had it
	asked bool   // the store was asked to give or renew it, and may have done so
	over  bool   // nobody holds it: the store may have given it, and the request was denied
}

func newSlots() *slots { return &slots{keys: map[owedKey]*slotsOf{}} }

// of returns the leases of a key that have not ended, nil if there are none. s is locked.
func (s *slots) of(k owedKey, now int64) *slotsOf {
	of := s.keys[k]
	if of == nil {
		return nil
	}
	for lease, l := range of.leases {
		if l.ends <= now {
			delete(of.leases, lease)
		}
	}
	if len(of.leases) == 0 && !of.telling {
		delete(s.keys, k)
		return nil
	}
	return of
}

// tidied is how many keys a new lease looks at, to forget leases that were not released.
const tidied = 4

// put notes a lease. s is locked.
func (s *slots) put(k owedKey, lease uint64, l slot, now int64) {
	of := s.keys[k]
	if of == nil {
		looked := 0
		for other := range s.keys { // begins at random
			s.of(other, now)
			if looked++; looked == tidied {
				break
			}
		}
		of = &slotsOf{leases: map[uint64]*slot{}}
		s.keys[k] = of
	}
	of.leases[lease] = &l
}

// unknown reports whether the store may not know one of the leases, after so many outages.
func (of *slotsOf) unknown(outages uint64) bool {
	for _, l := range of.leases {
		if l.known != outages+1 {
			return true
		}
	}
	return false
}

// leased reports whether an item gets a lease if it is admitted.
func (b *bound) leased(it *core.Item) bool { return b.leases[it.Rule] >= 0 && it.Cost > 0 }

// outagesOf returns how often the server of a key has been away.
func (b *bound) outagesOf(it *core.Item) uint64 {
	return b.circuits.of(b.serverOf(it.Rule, it.Key)).outages.Load()
}

// granting is what the store knows of a lease.
type granting uint8

const (
	byStore   granting = iota // it has given it
	mayHave                   // it was asked, and may have given it
	withoutIt                 // it was not asked
)

// grantedIf returns what the store knows of a lease that this process has given.
func grantedIf(asked bool) granting {
	if asked {
		return mayHave
	}
	return withoutIt
}

// hold notes the leases of a batch that was admitted.
func (b *bound) hold(batch *core.Batch, how granting) {
	b.note(batch, how, false)
}

// orphan notes the leases of a batch that was denied in this process although the store may
// have given them: they are released before the store decides on the key again.
func (b *bound) orphan(batch *core.Batch) { b.note(batch, mayHave, true) }

func (b *bound) note(batch *core.Batch, how granting, over bool) {
	if !b.hasLeases || batch.Peek {
		return
	}
	now := b.now()
	for i := range batch.Items {
		it := &batch.Items[i]
		if !b.leased(it) {
			continue
		}
		l := slot{cost: it.Cost, ends: b.leaseEnds(it, now), asked: how != withoutIt, over: over}
		if how == byStore {
			l.known = b.outagesOf(it) + 1
		}
		k := b.owed.key(it)
		b.slots.mu.Lock()
		b.slots.put(k, it.Lease, l, now)
		b.slots.mu.Unlock()
	}
}

func (b *bound) leaseEnds(it *core.Item, now int64) int64 {
	return now + b.rules[it.Rule].Limits[b.leases[it.Rule]].Window.Microseconds()
}

// drop forgets a lease that is released. It returns whether the store may have it.
func (b *bound) drop(it *core.Item) (asked bool) {
	k := b.owed.key(it)
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	of := b.slots.of(k, b.now())
	if of == nil {
		return true
	}
	l := of.leases[it.Lease]
	if l == nil {
		return true
	}
	delete(of.leases, it.Lease)
	if len(of.leases) == 0 && !of.telling {
		delete(b.slots.keys, k)
	}
	return l.asked || of.telling
}

// extend notes that leases are renewed in this process.
func (b *bound) extend(batch *core.Batch) {
	now := b.now()
	b.eachLease(batch, func(k owedKey, it *core.Item, l *slot) {
		if l == nil || l.ends <= now { // the store may have it for all that is known
			b.slots.put(k, it.Lease, slot{cost: it.Cost, ends: b.leaseEnds(it, now), asked: true}, now)
		} else {
			l.ends = b.leaseEnds(it, now)
		}
	})
}

// asking notes that the store is asked to renew leases, and may have them from now on.
func (b *bound) asking(batch *core.Batch) {
	b.eachLease(batch, func(_ owedKey, _ *core.Item, l *slot) {
		if l != nil {
			l.asked = true
		}
	})
}

// renewed notes that the store has renewed leases. outages is how often their server had been
// away before.
func (b *bound) renewed(batch *core.Batch, outages uint64) {
	b.eachLease(batch, func(_ owedKey, _ *core.Item, l *slot) {
		if l != nil {
			l.known = outages + 1
		}
	})
}

// eachLease calls f with the note of each lease of a batch, nil if there is none. The slots are
// locked.
func (b *bound) eachLease(batch *core.Batch, f func(k owedKey, it *core.Item, l *slot)) {
	for i := range batch.Items {
		it := &batch.Items[i]
		k := b.owed.key(it)
		b.slots.mu.Lock()
		var l *slot
		if of := b.slots.keys[k]; of != nil {
			l = of.leases[it.Lease]
		}
		f(k, it, l)
		b.slots.mu.Unlock()
	}
}

// unknownSlots reports whether the store may not know all leases of an item's key.
func (b *bound) unknownSlots(it *core.Item) bool {
	if !b.leased(it) {
		return false
	}
	k, outages := b.owed.key(it), b.outagesOf(it)
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	of := b.slots.of(k, b.now())
	return of != nil && (of.telling || of.unknown(outages))
}

// beginTelling returns the costs of the leases of an item's key of which the store is to be
// told. of is nil if there is nothing to tell, or another caller is telling it.
func (b *bound) beginTelling(it *core.Item, outages uint64) (of *slotsOf, held map[uint64]int64) {
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	of = b.slots.of(b.owed.key(it), b.now())
	if of == nil || of.telling || !of.unknown(outages) {
		return nil, nil
	}
	of.telling = true
	held = map[uint64]int64{}
	for lease, l := range of.leases {
		if !l.over && l.known != outages+1 {
			held[lease] = l.cost
		}
	}
	return of, held
}

// noteTold notes that the store was told of leases. Those that were released in between are to
// be released once more, because the store may have got the release first.
func (b *bound) noteTold(of *slotsOf, told *core.Batch, err error, outages uint64) {
	if err != nil && notCharged(err) {
		return
	}
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	now := b.now()
	for i := range told.Items {
		it := &told.Items[i]
		l := of.leases[it.Lease]
		switch {
		case l == nil:
			of.leases[it.Lease] = &slot{cost: it.Cost, ends: b.leaseEnds(it, now), asked: true, over: true}
		case err == nil:
			l.asked, l.known = true, outages+1
		default:
			l.asked = true
		}
	}
}

// overOf returns the costs of the leases that nobody holds.
func (b *bound) overOf(of *slotsOf) map[uint64]int64 {
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	over := map[uint64]int64{}
	for lease, l := range of.leases {
		if l.over {
			over[lease] = l.cost
		}
	}
	return over
}

func (b *bound) endTelling(it *core.Item, of *slotsOf) {
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	of.telling = false
	b.slots.of(b.owed.key(it), b.now())
}
