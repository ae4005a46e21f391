package core

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Never is the RetryAfter of a request that will not be allowed however long the
// client waits: it costs more than the whole quota.
const Never time.Duration = math.MaxInt64

// Unlimited is the quota of a request that a limit never denies: see
// [Rule.Quota] and [Item.Quotas]. Such a request is counted all the same.
const Unlimited int64 = math.MaxInt64

// Store keeps counters. A store decides and charges in one step, so that two
// callers cannot both take the last hit.
//
// What a store promises beyond that, its method Traits returns: see [Traits]. A
// store around another checks it with [TraitsOf].
//
// core/storetest tests everything that is written here.
type Store interface {
	// Bind prepares the store for the rules of one limiter. Counters are named
	// by (limiter, rule, limit, key): the same tuple finds the same counter,
	// in every process that shares the store. It is an error to bind a limiter
	// name that this Store value has bound before: two limiters never share a
	// counter by accident. A rule that the store cannot serve, such as one with
	// a window that is too long for it, is an error that wraps ErrConfig and names the
	// field and the value.
	Bind(limiter string, rules []StoreRule) (Bound, error)
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

// Bound is a store that has been prepared for the rules of a limiter. Its
// methods may be called concurrently.
type Bound interface {
	// Take decides on all items of b together and charges them all, or none. The results are
	// how things stand after that.
	// It fills in the results of every item in either case. With b.Peek
	// it decides in the same way and charges nothing.
	//
	// Take returns within the store's own deadline, and earlier if ctx ends; the
	// hits may be charged all the same. Take charges at most once, whatever
	// fails. After an error the results mean nothing, and the hits may have been
	// charged unless the error wraps [ErrNotCharged].
	Take(ctx context.Context, b *Batch) error
	// Charge charges all items of b, whether their limits admit the cost or not,
	// and sets Allowed. The results are how things stand after it: Allowed, and
	// without a wait. What is charged above a quota is paid off by waiting, as any
	// hit is. Counts stop at MaxQuota, a token bucket owes at most twice its
	// burst, and a sliding log keeps its newest hits, as many as its quota or as it has. During the wait
	// of a lockout nothing is charged to it. Charge
	// charges at most once, as Take does, and its errors mean the same.
	Charge(ctx context.Context, b *Batch) error
	// Refund gives back what an earlier Take or Charge of the same items charged:
	// Cost hits, or a part of them, charged at Item.At, with the quotas and results of
	// that Take. What has left its window since is not given back, no counter
	// falls below zero, and no other window gains.
	Refund(ctx context.Context, b *Batch) error
	// Reset forgets all counters of the items' keys. Costs do not matter.
	Reset(ctx context.Context, b *Batch) error
	// Rebind returns a Bound for new rules of the same limiter. Counters whose
	// rule name, algorithm, window, precision, alignment and time zone stay keep their
	// count, whatever their quota and burst become. The old Bound goes on
	// working.
	Rebind(rules []StoreRule) (Bound, error)
}

// Blocker is a Bound that can deny keys for a time, whatever they have counted.
// The Bounds of [Memory], package redisstore, package swapstore and package memcachedstore are.
type Blocker interface {
	// Block denies the keys of the items until d has passed, in every process that
	// shares the counters. Until then the results of a take have no hits left, and
	// their RetryAfter is at least the rest of d. d is 0 to MaxWindow. A d of 0 ends a
	// block, and so does Reset. The error wraps ErrUnsupported if this store wraps one
	// that cannot block.
	Block(ctx context.Context, b *Batch, d time.Duration) error
}

// Granter is a Bound that can give keys extra hits. The Bounds of [Memory], package
// redisstore, package swapstore and package memcachedstore are.
type Granter interface {
	// Grant gives each item's key Cost hits back, 1 to MaxQuota, of those that count
	// now, the newest first, and sets Allowed. It does so in each limit but those
	// with a Lockout and those of Leases, which it leaves alone. A limit that counts
	// fewer hits than that counts none after it: no limit ever has more left than its
	// quota, or its burst. It gives back whole hits: exactly Cost of them, if so many
	// count. Of the previous window of a SlidingWindow, it takes as many hits as it
	// takes for their share to fall by the rest. The end of a block does not change.
	//
	// The results are those of a look with the cost 0 after it. Grant grants at most
	// once, as Charge charges. After an error the hits may have been granted, unless the
	// error wraps [ErrNotCharged]. The error wraps ErrUnsupported if this store wraps one
	// that cannot grant.
	Grant(ctx context.Context, b *Batch) error
}

// ResetterOfAll is a Bound that can forget all counters of its limiter at once. The
// Bounds of [Memory] and package redisstore are.
type ResetterOfAll interface {
	// ResetAll forgets the counters of all keys of all rules. What is charged while
	// it runs may be forgotten or not. The error wraps ErrUnsupported if this store
	// wraps one that cannot do it.
	ResetAll(ctx context.Context) error
}

// Batch is the items that are decided on together. The caller owns it and all
// that it points to. A store keeps no reference to it after it has returned.
type Batch struct {
	// Items are the counters concerned. No two have the same Rule and Key.
	Items []Item
	// Peek asks for the decision without the charge.
	Peek bool
	// Allowed is set by the store: every limit of every item allows its cost.
	Allowed bool
	// Degraded is set by a store that answered without the shared counters: with
	// its own, or with none. An input of Refund.
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
	// Quotas are the quotas of the rule's limits for this batch, in order, in place
	// of Limit.Quota: 0 to MaxQuota (of a SlidingLog, to MaxLogQuota), or Unlimited.
	// nil means the limits' own quotas. The burst of a token bucket changes in
	// proportion, rounded down, and is at least 1. Stored counts do not depend on
	// quotas; the debt of a token bucket is paid off at the quota of the last charge.
	// If a quota is Unlimited, the limit admits every cost and charges it as
	// Bound.Charge does, and its Result is reckoned with Limit.Quota. An input of
	// Refund.
	Quotas []int64
	// At is the time of the decision by the store's clock, in microseconds
	// since the Unix epoch. Set by Take; an input of Refund.
	At int64
	// Results has one element for each limit of the rule, in order. The caller
	// makes it; Take fills it. An input of Refund.
	Results []Result
	// Lease is the lease that a Take gets in a limit of [Leases] of the item's rule:
	// a number above 0 that no other Take has. It is 0 if the rule has no such
	// limit. See [Leaser].
	Lease uint64
	// Unknown is set by a store that denied the batch because of another item
	// and did not look at this one: Results mean nothing. The caller of Take
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

// checkStore returns an error that wraps [ErrConfig] if s cannot be used: see
// [TraitsOf].
func checkStore(s Store) error {
	if s == nil {
		return fmt.Errorf("%w: Store: nil: must be a store", ErrConfig)
	}
	v := reflect.ValueOf(s)
	if isNil(v) {
		return fmt.Errorf("%w: Store: %T: is nil: must be a store", ErrConfig, s)
	}
	if field := nilStore(v); field != "" {
		return fmt.Errorf("%w: Store: %T: the embedded %s is nil: set it", ErrConfig, s, field)
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

// nilStore returns the name of the embedded store that is nil and whose Bind
// would be called, "" if there is none. v is not nil.
func nilStore(v reflect.Value) string {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || !promotesBind(v.Type()) {
		return ""
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.Anonymous || !f.Type.Implements(storeType) && !reflect.PointerTo(f.Type).Implements(storeType) {
			continue
		}
		field := v.Field(i)
		if isNil(field) {
			return f.Name
		}
		if field.Kind() == reflect.Interface && isNil(field.Elem()) {
			return f.Name
		}
		if name := nilStore(field); name != "" {
			return f.Name + "." + name
		}
	}
	return ""
}

var storeType = reflect.TypeFor[Store]()

// promotesBind returns whether a struct type has its Bind from an embedded field.
// A struct that declares a Bind of its own may leave the embedded store nil, as
// many tests do. A promoted method is in no file: the compiler makes it.
func promotesBind(t reflect.Type) bool {
	m, found := t.MethodByName("Bind")
	if !found {
		if m, found = reflect.PointerTo(t).MethodByName("Bind"); !found {
			return false
		}
	}
	fn := runtime.FuncForPC(m.Func.Pointer())
	if fn == nil {
		return false
	}
	file, _ := fn.FileLine(fn.Entry())
	return file == "<autogenerated>"
}

// Traits is what a [Store] promises. A store that promises anything has a method
//
//	Traits() Traits
//
// which [TraitsOf] calls. A field that is true is a promise; do not rely on what
// is not promised. A store around another returns the other's traits, less
// what it does not keep, and more if it adds a promise.
//
// core/storetest tests whether a store keeps its promises.
type Traits struct {
	// Exact: all processes that share the counters never admit more together
	// than a limit allows, as long as what the store depends on answers.
	Exact bool
	// NeverOpens: while what the store depends on, such as a server, does not
	// answer, the store allows no request that it has not counted. If it does not
	// promise Closes, it decides with counters of its own, and admits no more than
	// these allow.
	NeverOpens bool
	// Closes: while what the store depends on does not answer, Take returns an
	// error. A store that promises this promises NeverOpens too.
	Closes bool
	// KeepsDeadline: every operation returns within a deadline of the store's
	// own, even if what it depends on never answers and the context has no
	// deadline.
	KeepsDeadline bool
	// FailsFast: while what the store depends on does not answer, only a few
	// operations wait for it; the others return at once.
	FailsFast bool
	// Private: the counters belong to this Store value. No other process and
	// no other Store value counts in them.
	Private bool
	// OneStep: all items of a Batch are decided on and charged in one step.
	// Otherwise the store may charge some items and give the hits back when it
	// denies a later one; other takes may be denied because of these hits.
	OneStep bool
}

// TraitsOf returns what a store promises: nothing, if it has no method Traits. A
// struct that embeds the interface Store has no method Traits; one that embeds a
// concrete store has that store's, unless it declares its own.
//
// The error wraps [ErrConfig] if s cannot be used: it is nil, it is an interface
// that holds a nil pointer, map, slice, channel or function, or its Bind is that
// of an embedded store which is nil. A store around another calls TraitsOf when
// it is made; [New] does too.
func TraitsOf(s Store) (Traits, error) {
	if err := checkStore(s); err != nil {
		return Traits{}, err
	}
	if t, ok := s.(interface{ Traits() Traits }); ok {
		return t.Traits(), nil
	}
	return Traits{}, nil
}

// Traits returns what a Memory promises. It depends on nothing that could be
// gone: once it is closed, Take returns [ErrClosed].
func (m *Memory) Traits() Traits {
	return Traits{Exact: true, NeverOpens: true, Closes: true, KeepsDeadline: true, FailsFast: true, Private: true, OneStep: true}
}
