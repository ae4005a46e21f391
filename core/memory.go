package core

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/names"
)

// DefaultMaxKeys is the MaxKeys of a Memory with MemoryConfig.MaxKeys 0.
const DefaultMaxKeys = 1_000_000

// defaultMaxBytes bounds the keys of a rule in a Memory without a MaxKeys.
const defaultMaxBytes = 256 << 20

// MemoryConfig configures [NewMemory]. The zero value works.
type MemoryConfig struct {
	// MaxKeys is the most keys held at a time, over all limiters and rules: 1 to 2^31-1, and at
	// least the keys of one request. 0 means DefaultMaxKeys: then a rule whose states can become
	// large holds at most 256 MB, but at least 8,000 keys.
	//
	// A key takes about 23 + 18 × limits bytes with the default algorithm. A SlidingLog adds 8
	// bytes for each hit that it holds, at most 128 KiB. A BucketedWindow adds 8 bytes for each
	// bucket, at most 33 KiB.
	MaxKeys int
	// Clock returns the time, and may be called concurrently. A [Lockout] needs times after 1970.
	// nil: the process's monotonic clock, which ignores changes of the wall clock.
	Clock func() time.Time
}

// Memory is the store that counts in this process. Its methods may be called concurrently. Counters
// are lost when the process ends.
//
// Memory starts no goroutine: insertions remove expired keys. It keeps a 128-bit hash of each key,
// with random seeds, and not its text.
//
// # When it is full
//
// At MaxKeys, a new key evicts another one. A rule's share is MaxKeys divided by the number of
// rules that hold keys. A new key of a rule at its share evicts a key of that rule. Any other new
// key evicts one of the largest rule above its share. So a flood of keys on one rule evicts no key of
// a rule below its share, as long as fewer than some 50 rules hold keys.
//
// Of up to eight keys examined, an expired one goes first, then the one that has used the smallest
// part of its limits. A denied key goes only if every key of its rule in its shard is denied. So a
// client can end its own denial with made-up keys only if it uses up the limits of about as many
// keys as the rule's share.
type Memory struct {
	now    func() int64
	tables *memtable.Tables
	names  *names.Owner
}

// NewMemory returns an empty store. Its error wraps [ErrConfig].
func NewMemory(c MemoryConfig) (*Memory, error) {
	if c.MaxKeys < 0 || c.MaxKeys > 1<<31-1 {
		return nil, fmt.Errorf("%w: MaxKeys: %d: must be from 1 to 2^31-1, or 0 for %d", ErrConfig, c.MaxKeys, DefaultMaxKeys)
	}
	maxBytes := int64(0)
	if c.MaxKeys == 0 {
		c.MaxKeys, maxBytes = DefaultMaxKeys, defaultMaxBytes
	}
	return &Memory{now: meter.Clock(c.Clock), tables: memtable.New(c.MaxKeys, maxBytes), names: names.New("", true)}, nil
}

// Len returns the number of keys held, including expired ones.
func (m *Memory) Len() int { return m.tables.Len() }

// Evicted returns the number of keys evicted before they expired. If it grows, MaxKeys is too small
// or a client makes up keys.
func (m *Memory) Evicted() uint64 { return m.tables.Evicted() }

// Close removes all counters. Later operations fail with [ErrClosed]. It waits for running
// operations and returns nil.
func (m *Memory) Close() error {
	m.tables.Close()
	m.names.Release()
	return nil
}

// memoryCounters are the Counters of a Memory.
type memoryCounters struct {
	m       *Memory
	limiter string
	keys    *memtable.Binding
}

// Open implements [Store].
func (m *Memory) Open(limiter string, rules []StoreRule) (Counters, error) {
	all, err := tableRules(rules)
	if err != nil {
		return nil, err
	}
	if err := m.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", ErrConfig, limiter, err)
	}
	keys, err := m.tables.Bind(limiter, all)
	if err != nil {
		m.names.Unclaim(limiter)
		return nil, fmt.Errorf("opening limiter %q: %w", limiter, ErrClosed)
	}
	return &memoryCounters{m, limiter, keys}, nil
}

// Reopen implements [Counters].
func (c *memoryCounters) Reopen(rules []StoreRule) (Counters, error) {
	all, err := tableRules(rules)
	if err != nil {
		return nil, err
	}
	keys, err := c.keys.Rebind(all)
	if err != nil {
		return nil, fmt.Errorf("opening limiter %q: %w", c.limiter, ErrClosed)
	}
	return &memoryCounters{c.m, c.limiter, keys}, nil
}

// tableRules converts rules for package memtable.
func tableRules(rules []StoreRule) ([]memtable.Rule, error) {
	all, names := make([]memtable.Rule, len(rules)), make(map[string]bool, len(rules))
	for i, r := range rules {
		if names[r.Name] {
			return nil, fmt.Errorf("%w: rule %q: two rules have this name", ErrConfig, r.Name)
		}
		names[r.Name] = true
		all[i].Name = r.Name
		for _, l := range r.Limits {
			all[i].Limits = append(all[i].Limits, l.meter())
		}
	}
	return all, nil
}

var errMemoryClosed = fmt.Errorf("in-process counters: %w", ErrClosed)

// Do implements [Counters]. It waits only for other callers.
func (c *memoryCounters) Do(_ context.Context, b *Batch) error { return c.do(b) }

// do reads the clock before it locks, because the clock may be the user's code. Another caller
// may charge the key at a later time first: the limits then decide at that later time.
func (c *memoryCounters) do(b *Batch) error {
	b.Allowed = true
	switch {
	case b.Op&AllOps == 0:
		return fmt.Errorf("%v: %w", b.Op, ErrUnsupported)
	case b.Op == OpResetAll:
		if c.keys.ResetAll() != nil {
			return errMemoryClosed
		}
		return nil
	case len(b.Items) == 0:
		return nil
	}
	now := c.m.now()
	if item := &b.Items[0]; len(b.Items) == 1 && b.Op&(OpTake|OpPeek) != 0 && item.Quotas == nil { // most operations
		r := (*meter.Result)(&item.Results[0])
		if at, done := c.keys.Take(item.Rule, item.Key, now, item.Cost, b.Op == OpPeek, r); done {
			item.At, b.Allowed = at, r.Allowed
			return nil
		}
	}
	var room [2]memtable.Place
	places := room[:min(len(b.Items), len(room))]
	if len(b.Items) > len(room) {
		places = make([]memtable.Place, len(b.Items))
	}
	for i := range places {
		c.keys.Locate(&places[i], b.Items[i].Rule, b.Items[i].Key)
	}
	defer memtable.Unlock(places)
	switch {
	case !memtable.Lock(places):
		return errMemoryClosed
	case b.Op&(OpTake|OpPeek) != 0:
		take(b, places, now)
	default:
		for i := range places {
			places[i].Find() // the item before may have moved the slots
			change(b, i, places, now)
		}
	}
	return nil
}

// change runs an operation other than a take on one item.
func change(b *Batch, i int, places []memtable.Place, now int64) {
	p, item := &places[i], &b.Items[i]
	switch b.Op {
	case OpCharge:
		if item.Cost > 0 {
			p.Insert(places, now)
		}
		judge(p, item, now)
		report(p, item, now, true)
	case OpRefund:
		refund(p, item, now)
	case OpGrant:
		grant(p, item, now)
	case OpReset:
		p.Remove()
		p.Block(0, now)
	case OpBlock:
		p.Block(b.For.Microseconds(), now)
	}
}

func take(b *Batch, places []memtable.Place, now int64) {
	for i := range places {
		if !judge(&places[i], &b.Items[i], now) {
			b.Allowed = false
		}
	}
	moved := false // a key has been inserted, and slots have moved
	for i := range places {
		p, item := &places[i], &b.Items[i]
		if moved {
			p.Find()
		}
		charge := b.Allowed && b.Op == OpTake && item.Cost > 0
		if charge {
			moved = p.Insert(places, now) || moved
		}
		report(p, item, now, charge)
	}
}

// judge sets the item's At and decides by each of its limits. It reports whether the cost is
// allowed and the key is not blocked.
func judge(p *memtable.Place, item *Item, now int64) bool {
	item.At = now
	allowed := true
	for i := range item.Results {
		r := &item.Results[i]
		m, w := p.Limit(i, item.quota(i))
		at, _ := m.Decide((*meter.Result)(r), w, now, item.Cost)
		item.At = max(item.At, at)
		allowed = allowed && r.Allowed
	}
	return allowed && (item.Cost == 0 || p.BlockedFor(now) == 0)
}

// report fills in the results of an item that was judged. If charge is true, it first charges the
// cost to every limit, even if the key is blocked.
func report(p *memtable.Place, item *Item, now int64, charge bool) {
	for i := range p.Limits() {
		p.Report(i, item.quota(i), now, item.Cost, charge, (*meter.Result)(&item.Results[i]))
	}
	if charge {
		return
	}
	wait := meter.Duration(p.BlockedFor(now))
	if wait == 0 {
		return
	}
	for i := range item.Results {
		r := &item.Results[i]
		r.Remaining, r.ResetAfter, r.MoreAfter = 0, max(r.ResetAfter, wait), max(r.MoreAfter, wait)
		if item.Cost > 0 {
			r.Allowed, r.RetryAfter = false, max(r.RetryAfter, wait)
		}
	}
}

func refund(p *memtable.Place, item *Item, now int64) {
	if !p.Known() {
		return
	}
	for i := range p.Limits() {
		p.Refund(i, item.quota(i), now, item.At, item.Results[i].ResetAfter.Microseconds(), item.Cost)
	}
	p.Refunded(now)
}

func grant(p *memtable.Place, item *Item, now int64) {
	if p.Known() {
		for i := range p.Limits() {
			p.Grant(i, item.quota(i), now, item.Cost)
		}
		p.Refunded(now)
	}
	look := *item // the results are its own
	look.Cost = 0
	judge(p, &look, now)
	report(p, &look, now, false)
	item.At = look.At
}

// Guarantees implements [Store].
func (m *Memory) Guarantees() Guarantees {
	return Guarantees{Ops: AllOps, Exact: true, OneStep: true, KeepsDeadline: true, FailsFast: true, OnFailure: FailClosed}
}
