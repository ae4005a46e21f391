package core

import (
	"slices"
	"sync/atomic"
	"time"
)

// record is what a Decision keeps of a session if that does not fit into the
// Decision: one allocation, shared by the copies of the Decision. It is part of a
// singleRecord or a longRecord.
type record struct {
	items    []recordedItem
	results  []Result
	quotas   []int64                // as results; nil if no item has quotas of its own
	decides  int32                  // index of the item of the deciding limit
	outcome  bool                   // Settle has something to do
	estimate bool                   // see Decision.SetCost
	settled  atomic.Bool            // by Settle
	adjusted atomic.Bool            // by Settle or Adjust
	fates    atomic.Pointer[[]fate] // what Settle has done with the items; nil: it has kept all
	said     atomic.Int64           // what SetCost has said, plus 1; 0: nothing
	lease    uint64                 // of the items whose rules have a limit of Leases; 0: none
	released atomic.Bool            // the leases have ended
	held     atomic.Bool            // Settle leaves them alone: see Decision.Hold
	since    time.Time              // when the leases began, if an observer wants to know how long they last
}

// singleRecord is the record of a decision on one limit.
type singleRecord struct {
	record

	item   [1]recordedItem
	result [1]Result
}

// longRecord is the record of a decision on several limits. With 512 bytes or less it
// costs the allocator less.
type longRecord struct {
	record

	firstItems   [3]recordedItem
	firstResults [6]Result
}

// newRecord returns an empty record with room for so many results.
func newRecord(results int) *record {
	if results == 1 {
		r := new(singleRecord)
		r.items, r.results = r.item[:0], r.result[:0]
		return &r.record
	}
	r := new(longRecord)
	r.items, r.results = r.firstItems[:0], r.firstResults[:0]
	return &r.record
}

// recordedItem is an Item with its key as text: the Key of a Hit if raw
// is set, else the key that the store gets. hit reports that a Hit brought it.
type recordedItem struct {
	rule int32
	hit  bool
	raw  bool
	key  string
	cost int64
	at   int64
}

// detail, marks and outcomes are the parts of a Decision that programs cannot read.
type detail struct {
	snap *snapshot
	// Of a decision on one limit without a record, as in recordedItem:
	key string
	at  int64 // of a slot, see takeSlot, its lease
}

// marks fill a gap between two fields of a Decision.
type marks struct {
	charged bool  // of every decision
	limit   uint8 // index of the deciding limit in its rule, of every decision
	// Of a decision on one limit without a record, as in recordedItem:
	hit, raw bool
}

// outcomes has methods that adapters call for each request. They are its own, so that a
// call does not copy the Decision: the compiler keeps an outcomes in registers.
type outcomes struct {
	record  *record
	rule    int32 // of a decision on one limit without a record, as in recordedItem
	slotted bool  // takeSlot has given a lease, and there is no record of it
}

func (c *session) newRecord(hits []Hit) *record {
	r := newRecord(len(c.results))
	var keys string
	if hits == nil || slices.ContainsFunc(hits, func(h Hit) bool { return h.Extra != "" }) {
		keys = string(c.keys)
	}
	for i := range c.items {
		item := &c.items[i]
		if item.Unknown { // nothing was charged either
			continue
		}
		it := recordedItem{rule: int32(item.Rule), cost: item.Cost, at: item.At}
		it.hit = hits != nil
		if it.raw = it.hit && hits[c.spans[i].hit].Extra == ""; it.raw {
			it.key = hits[c.spans[i].hit].Key
		} else {
			it.key = keys[c.spans[i].from:c.spans[i].to]
		}
		if i == c.decides {
			r.decides = int32(len(r.items))
		}
		r.items = append(r.items, it)
		r.results = append(r.results, item.Results...)
		if len(c.quotas) > 0 {
			r.quotas = c.snap.appendQuotas(r.quotas, item)
		}
	}
	return r
}

// recall makes the session's batch of the items that d's was made of, those
// for which want returns true, by their place in the record.
func (c *session) recall(d *Decision, want func(i int) bool) {
	var kept []Result
	if r := d.record; r != nil {
		from := 0
		for i, it := range r.items {
			n := len(c.snap.rules[it.rule].Limits)
			if want(i) {
				c.addRecorded(it)
				kept = append(kept, r.results[from:from+n]...)
				if r.quotas != nil {
					c.addQuotas(r.quotas[from : from+n])
				}
			}
			from += n
		}
	} else {
		it := d.decidingItem()
		c.addRecorded(it)
		if d.Limit.Quota != c.snap.rules[it.rule].Limits[0].Quota {
			c.addQuotas([]int64{d.Limit.Quota})
		}
		kept = []Result{{Allowed: true, Remaining: d.Remaining, ResetAfter: d.ResetAfter}}
	}
	c.bindItems()
	copy(c.results, kept)
	c.batch.Degraded = d.Degraded
}

func (c *session) addRecorded(it recordedItem) {
	if it.raw {
		c.addHit(int(it.rule), it.key, "", it.cost)
	} else {
		from := len(c.keys)
		c.keys = append(c.keys, it.key...)
		c.addItem(int(it.rule), from, it.cost)
	}
	c.items[len(c.items)-1].At = it.at
}

// decidingRule returns the index of the rule that the decision names.
func (d *Decision) decidingRule() int {
	if r := d.record; r != nil {
		return int(r.items[r.decides].rule)
	}
	return int(d.rule)
}

// decidingKey returns the key of the limit that the decision names, and what Hooks.KeyExtra has
// added. A rule must have applied.
func (d *Decision) decidingKey() (key, extra string) {
	key, raw := d.detail.key, d.marks.raw
	if r := d.record; r != nil {
		it := &r.items[r.decides]
		key, raw = it.key, it.raw
	}
	if raw {
		return key, ""
	}
	return openKey(key)
}

// decidingItem returns the item of the limit that the decision names. A rule
// must have applied.
func (d *Decision) decidingItem() recordedItem {
	if r := d.record; r != nil {
		return r.items[r.decides]
	}
	return recordedItem{rule: d.rule, hit: d.marks.hit, raw: d.marks.raw, key: d.detail.key, cost: d.Cost, at: d.at()}
}

// at returns the time of the decision.
func (d *Decision) at() int64 {
	switch r := d.record; {
	case r != nil:
		return r.items[0].at
	case d.slot() != 0: // nobody asks for the time of its take
		return d.detail.snap.now()
	default:
		return d.detail.at
	}
}
