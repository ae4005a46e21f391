package core

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Never is the RetryAfter of a request that will not be allowed however long the
// client waits: it costs more than the whole quota.
const Never time.Duration = math.MaxInt64

// Unlimited is the quota of a request that a limit never denies: see
// [Rule.Quota] and [Item.Quotas]. Such a request is counted all the same.
const Unlimited int64 = math.MaxInt64

// Store keeps counters. It decides and charges in one step, so that two callers
// cannot both take the last hit. core/storetest tests everything that is written here.
type Store interface {
	// Open prepares the store for the rules of one limiter. Counters are named
	// by (limiter, rule, limit, key): the same tuple finds the same counter,
	// in every process that shares the store. It is an error to open a limiter
	// name that this Store value has opened before: two limiters never share a
	// counter by accident. A rule that the store cannot serve, such as one with
	// a window that is too long for it, is an error that wraps ErrConfig and names the
	// field and the value.
	Open(limiter string, rules []StoreRule) (Counters, error)
	// Guarantees returns what the store promises. A store around another returns the
	// other's, with what it changes: a struct that embeds a Store promises all that it does.
	Guarantees() Guarantees
}

// Counters are a store's counters for the rules of a limiter. The methods may be called
// concurrently, each with a Batch of its own.
type Counters interface {
	// Do does the operation b.Op. It returns when the store's own deadline passes or ctx
	// ends, whichever is first; the store may still do the operation after that. It charges at most once,
	// whatever fails. After an error the results mean nothing, and the hits may have been
	// charged unless the error wraps [ErrNotCharged]. The error wraps [ErrUnsupported] if
	// the store does not know the operation. A store around another passes on the
	// operations that it does not know.
	Do(ctx context.Context, b *Batch) error
	// Reopen returns Counters for new rules of the same limiter. Counters whose
	// rule name, algorithm, window, precision, alignment and time zone stay keep their
	// count, whatever their quota and burst become. The old Counters go on
	// working.
	Reopen(rules []StoreRule) (Counters, error)
}

// Op is an operation of a store on the items of a [Batch]. Several are joined by |, as in
// Guarantees.Ops.
type Op uint16

const (
	// OpTake decides on all items together and charges them all, or none. It sets
	// Batch.Allowed, and the results of every item in either case, but for Item.Unknown: the
	// states after it.
	OpTake Op = 1 << iota
	// OpPeek decides as OpTake does, and charges nothing.
	OpPeek
	// OpCharge charges all items, whether their limits allow the cost or not,
	// and sets Batch.Allowed. The results are the states after it: Allowed, and
	// without a wait. What is charged above a quota is paid off by waiting, as any
	// hit is. Counts stop at MaxQuota, a token bucket owes at most twice its
	// burst, and a sliding log keeps its newest hits, as many as its quota or as it has.
	// During the wait of a lockout nothing is charged to it.
	OpCharge
	// OpRefund gives back what an earlier OpTake or OpCharge of the same items charged:
	// Cost hits, or a part of them, charged at Item.At, with the quotas and results of
	// that operation. What has left its window since is not given back, no counter
	// falls below zero, and no other window gains.
	OpRefund
	// OpGrant gives each item's key Cost hits back, 1 to MaxQuota, of those that count
	// now, the newest first, and sets Batch.Allowed. It does so in each limit but those
	// with a Lockout and those of Leases, which it leaves alone. A limit that counts
	// fewer hits than that counts none after it: no limit ever has more left than its
	// quota, or its burst. It gives back whole hits: exactly Cost of them, if so many
	// count. In a SlidingWindow, it gives back hits of the current window first, and then hits
	// of the previous one until their share has fallen by the rest. The end of a block does
	// not change.
	// The results are those of an OpPeek with the cost 0 after it.
	OpGrant
	// OpReset forgets all counters of the items' keys. Costs do not matter.
	OpReset
	// OpBlock denies the keys of the items until Batch.For has passed, in every process that
	// shares the counters. Until then the results of a take have no hits left, and
	// their RetryAfter is at least the rest of the block. A For of 0 ends a
	// block, and so does OpReset.
	OpBlock
	// OpResetAll forgets the counters of all keys of all rules; the batch has no items.
	// What is charged while it runs may be forgotten or not.
	OpResetAll
	// OpRelease ends the leases of the items: see Item.Lease. What has ended, or never was, is
	// no error, and no other lease changes. Unlike in other batches, several items may have the
	// same Rule and Key, each with another Lease. Rules without a limit of Leases are left alone.
	OpRelease
	// OpRenew makes the leases of the items end a whole Window from now, those that have ended
	// since too: they count again, above the quota if need be. Its items are as those of OpRelease.
	OpRenew

	// AllOps are all operations.
	AllOps = OpTake | OpPeek | OpCharge | OpRefund | OpGrant | OpReset | OpBlock | OpResetAll | OpRelease | OpRenew
)

var ops = [...]string{"take", "peek", "charge", "refund", "grant", "reset", "block", "reset all", "release", "renew"}

// String returns the operation as a verb, such as "take".
func (o Op) String() string {
	if i := bits.TrailingZeros16(uint16(o)); i < len(ops) && o == 1<<i {
		return ops[i]
	}
	return fmt.Sprintf("Op(%#x)", uint16(o))
}

// Guarantees is what a [Store] promises. Do not rely on what is not promised.
// core/storetest tests whether a store keeps its promises.
type Guarantees struct {
	// Ops are the operations that the store knows.
	Ops Op
	// Exact: all processes that share the counters never allow more together
	// than a limit allows, as long as what the store depends on answers.
	Exact bool
	// OneStep: all items of a Batch are decided on and charged in one step.
	// Otherwise the store may charge some items and give the hits back when it
	// denies a later one; other takes may be denied because of these hits.
	OneStep bool
	// Shared: other processes, or other Store values, count in the same counters.
	Shared bool
	// KeepsDeadline: every operation returns within a deadline of the store's
	// own, even if what it depends on never answers and the context has no
	// deadline.
	KeepsDeadline bool
	// FailsFast: while what the store depends on does not answer, only a few
	// operations wait for it; the others return at once.
	FailsFast bool
	// OnFailure is what the store does while what it depends on, such as a server, does
	// not answer.
	OnFailure OnFailure
}

// OnFailure is what a store does while what it depends on, such as a server, does not answer.
type OnFailure uint8

const (
	// FailOpen means that the store may allow requests that it has not counted.
	FailOpen OnFailure = iota
	// FailLocal means that the store decides with counters of this process, and allows no
	// more than these do.
	FailLocal
	// FailClosed means that OpTake returns an error.
	FailClosed
)

var onFailures = [...]string{"fail open", "local", "fail closed"}

// String returns the mode as a word or two.
func (f OnFailure) String() string {
	if int(f) < len(onFailures) {
		return onFailures[f]
	}
	return fmt.Sprintf("OnFailure(%d)", uint8(f))
}

// StoreRule is a rule as a store sees it. The limits have been checked, and
// their names and the zero values of their lockouts filled in. No two limits of a rule have the same algorithm,
// window, precision, alignment and time zone (by name): these identify its counters.
type StoreRule struct {
	Name   string
	Limits []Limit
	// DenyUnreadable is what a store does about a stored value that it cannot
	// read: one that is not of the store's format, because another program has
	// written it under the name of a counter, or because it has been damaged. If
	// it is true, the key is denied for the shortest window of the rule's limits,
	// and begins anew after that. If it is false, the value counts as none, and the
	// next charge replaces it.
	//
	// Operations do not fail because of such a value. A store logs it. Values
	// have no checksum: a damaged value that is still of the format is read as it
	// is. A value in a format of a later version of this module is never
	// replaced: its key is denied until the value expires.
	DenyUnreadable bool
}

// Batch is the items that are decided on together. The caller owns it and all
// that it points to. A store keeps no reference to it after it has returned.
type Batch struct {
	// Op is the operation.
	Op Op
	// For is how long OpBlock blocks: 0 to MaxWindow.
	For time.Duration
	// Items are the counters concerned. No two have the same Rule and Key.
	Items []Item
	// Allowed is set by the store: every limit of every item allows its cost, and no key is
	// blocked.
	Allowed bool
	// Degraded is set by a store that answered without the shared counters: with
	// its own, or with none. An input of OpRefund.
	Degraded bool
	// Cached is set by a store that has denied the batch from what it remembers
	// of an earlier denial, without asking the counters.
	Cached bool
}

// Item is one key of one rule.
type Item struct {
	// Rule is the rule's index in the rules given to Open.
	Rule int
	// Key is the key; any bytes, of any length.
	Key []byte
	// Cost is the number of hits, 0 or more. 0 is always allowed, changes
	// nothing and starts nothing.
	Cost int64
	// Quotas are the quotas of the rule's limits for this batch, in order, in place
	// of Limit.Quota: 0 to MaxQuota (of a SlidingLog, to MaxLogQuota), or Unlimited.
	// nil means the limits' own quotas. The burst of a token bucket changes in
	// proportion, rounded down, and is at least 1. Stored counts do not depend on
	// quotas; the debt of a token bucket is paid off at the quota of the last charge.
	// If a quota is Unlimited, the limit allows every cost and charges it as
	// OpCharge does, and its Result is reckoned with Limit.Quota. An input of
	// OpRefund.
	Quotas []int64
	// At is the time of the decision by the store's clock, in microseconds
	// since the Unix epoch. Set by OpTake; an input of OpRefund.
	At int64
	// Results has one element for each limit of the rule, in order. The caller
	// makes it; OpTake fills it. An input of OpRefund.
	Results []Result
	// Lease is the number of the lease that OpTake adds to a limit of [Leases] of the item's
	// rule: above 0, and chosen by the caller so that no other lease has it. The lease has Cost
	// slots. It is 0 if the rule has no such limit. OpCharge and OpRefund leave leases alone, and OpReset ends all of a key. A store
	// that takes the keys of a Batch one by one, and gives back what it has charged
	// when a later one denies, ends the leases of that OpTake too.
	Lease uint64
	// Unknown is set by a store that denied the batch because of another item
	// and did not look at this one: Results mean nothing. The caller
	// makes it false.
	Unknown bool
}

// quota returns the quota of a limit as package meter takes it.
func (it *Item) quota(limit int) int64 {
	if it.Quotas == nil {
		return meter.Own
	}
	return it.Quotas[limit]
}

// Result is the state of one limit for one key, after the charge if there was
// one.
type Result struct {
	// Allowed reports whether this limit by itself allows the cost.
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
	// RetryAfter is 0 if the limit allows the cost. Otherwise it is how long it
	// takes, without further hits, until the limit allows it, exact to the
	// microsecond: the cost is denied one earlier. Never if it never will. Of Leases
	// it is a second, because nobody knows when a request ends.
	RetryAfter time.Duration
}

// checkStore returns an error that wraps [ErrConfig] if s is nil, or holds nil.
func checkStore(s Store) error {
	if s == nil || isNil(reflect.ValueOf(s)) {
		return fmt.Errorf("%w: Store: %T: is nil: must be a store, or leave Store out", ErrConfig, s)
	}
	return nil
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}
