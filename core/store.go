package core

import (
	"context"
	"math"
	"time"
)

// Never is the RetryAfter of a request that no waiting will let through: it
// costs more than the whole quota.
const Never time.Duration = math.MaxInt64

// Store is where counters live. A store decides and consumes in one step, so
// that no two callers can both take what is only left once.
//
// A store says what it promises beyond that by a method Traits; see [Traits]. A
// store around another checks it with [CheckStore].
//
// core/storetest tests everything that is written here.
type Store interface {
	// Bind prepares the store for the rules of one limiter. Counters are named
	// by (limiter, rule, limit, key): the same tuple finds the same counter,
	// in every process that shares the store. It is an error to bind a limiter
	// name that this Store value has bound before: two limiters never share a
	// counter by accident. A rule that the store cannot serve (a window that
	// it cannot hold, say) is an error that wraps ErrConfig and names the
	// field and the value.
	Bind(limiter string, rules []StoreRule) (Bound, error)
}

// StoreRule is a rule as a store sees it. The limits have been checked, and
// their names and the zero values of their lockouts filled in. No two limits of a rule have the same algorithm,
// window, precision and alignment: these are what tells its counters apart.
type StoreRule struct {
	Name   string
	Limits []Limit
	// DenyUnreadable demands the behaviour of that name from the store,
	// whatever its own option is: see [Unreadable].
	DenyUnreadable bool
}

// Bound is a store that has been prepared for the rules of a limiter. Its
// methods may be called concurrently.
type Bound interface {
	// Take decides on all items of b together and charges them all, or none.
	// It fills in the results of every item in either case. With b.Peek
	// it decides in the same way and charges nothing.
	//
	// Take answers within the store's own deadline. The charge stands even
	// where ctx ends first; ctx may only shorten the waiting. Take charges at
	// most once, whatever fails. After an error the results mean nothing.
	Take(ctx context.Context, b *Batch) error
	// Refund gives back what an earlier Take of the same items charged: Cost
	// hits, charged at Item.At, with the results of that Take. What has left
	// its window since is not given back, no counter falls below zero, and no
	// other window gains.
	Refund(ctx context.Context, b *Batch) error
	// Reset forgets all counters of the items' keys. Costs do not matter.
	Reset(ctx context.Context, b *Batch) error
	// Rebind returns a Bound for new rules of the same limiter. Counters whose
	// rule name, algorithm, window, precision and alignment stay keep their
	// count, whatever their quota and burst become. The old Bound works on
	// until nobody uses it any more.
	Rebind(rules []StoreRule) (Bound, error)
}

// Batch is the items that are decided on together. The caller owns it and all
// that it points to; a store keeps nothing of it after it has returned.
type Batch struct {
	// Items are the counters concerned. No two have the same Rule and Key.
	Items []Item
	// Peek asks for the decision without the charge.
	Peek bool
	// Allowed is set by the store: every limit of every item admits its cost.
	Allowed bool
	// Degraded is set by a store that answered without the shared counters it
	// stands for: with its own, or with none. An input of Refund.
	Degraded bool
	// Recalled is set by a store that has denied the batch from what it remembers
	// of an earlier denial, without asking the counters.
	Recalled bool
}

// Item is one key of one rule.
type Item struct {
	// Rule is the rule's index in the rules given to Bind.
	Rule int
	// Key is the key; any bytes, of any length.
	Key []byte
	// Cost is the number of hits, 0 or more. 0 is always admitted, changes
	// nothing and starts nothing.
	Cost int64
	// At is the time of the decision by the store's clock, in microseconds
	// since the Unix epoch. Set by Take; an input of Refund.
	At int64
	// Results has one element for each limit of the rule, in order. The caller
	// makes it; Take fills it. An input of Refund.
	Results []Result
	// Unknown is set by a store that denied the batch because of another item
	// and did not look at this one: Results mean nothing. The caller of Take
	// makes it false.
	Unknown bool
}

// Result is what one limit says of one key: before the charge, or after it
// where there was one.
type Result struct {
	// Allowed says that this limit by itself admits the cost.
	Allowed bool
	// Remaining is the number of hits that could be taken now, 0 or more.
	Remaining int64
	// ResetAfter is how long it takes, without further hits, until the whole
	// quota (of a token bucket: the whole burst) can be taken at once. In
	// whole microseconds, rounded up.
	ResetAfter time.Duration
	// MoreAfter is how long it takes, without further hits, until Remaining
	// grows: exact to the microsecond, unchanged one earlier. 0 if the whole
	// quota is available, or the quota is 0.
	MoreAfter time.Duration
	// RetryAfter is 0 where the limit admits the cost, else how long it takes,
	// without further hits, until it would: exact to the microsecond, denied
	// one earlier. Never where it never would.
	RetryAfter time.Duration
}
