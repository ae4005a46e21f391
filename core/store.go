package core

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Never is the RetryAfter of a request that costs more than the whole quota.
const Never time.Duration = math.MaxInt64

// Unlimited is a quota that never denies and still counts: see [Rule.Quota].
const Unlimited int64 = math.MaxInt64

// Store keeps counters. It decides and charges in one step, so that two callers never both take the
// last hit.
type Store interface {
	// Open prepares the counters of one limiter. Limiter, rule, limit and key name a counter, the
	// same in every process that shares the store. Opening a limiter name twice on one Store value
	// is an error. So is a rule that the store cannot serve: it wraps [ErrConfig] and names the
	// field and the value.
	Open(limiter string, rules []StoreRule) (Counters, error)
	// Guarantees returns what the store promises. A wrapper returns those of the wrapped store,
	// with its changes.
	Guarantees() Guarantees
}

// Counters are the counters of one limiter. The methods may be called concurrently.
type Counters interface {
	// Do runs the operation b.Op. It returns no later than the store's own deadline or that of ctx.
	// The store may still finish the operation later. It charges at most once.
	//
	// After an error the results mean nothing, and the hits may have been charged unless the error
	// wraps [ErrNotCharged]. The error wraps [ErrUnsupported] if the store does not know the
	// operation. A wrapper passes on operations that it does not know.
	Do(ctx context.Context, b *Batch) error
	// Reopen returns Counters for new rules of the same limiter. A counter keeps its count if its
	// rule name, algorithm, window, precision, alignment and time zone stay; quota and burst may
	// change. The old Counters go on working.
	Reopen(rules []StoreRule) (Counters, error)
}

// Op is an operation on the items of a [Batch].
type Op uint16

const (
	// OpTake decides on all items together and charges all of them or none. The results are the
	// states afterwards.
	OpTake Op = 1 << iota
	// OpPeek decides as OpTake does and charges nothing.
	OpPeek
	// OpCharge charges all items, even above their quotas, and sets Batch.Allowed. The results are
	// the states afterwards, without a RetryAfter. Time pays off hits above the quota. Counts stop
	// at MaxQuota, a token bucket owes at most twice its burst, and a sliding log keeps its newest
	// hits. A lockout charges nothing during its wait.
	OpCharge
	// OpRefund gives back up to Cost hits of each item that an OpTake or OpCharge charged. The
	// batch is that of the charge, as the store filled it: Degraded, Quotas, At and Results are
	// inputs. Hits that have left their window are not given back. No count falls below zero.
	OpRefund
	// OpGrant gives each key Cost hits back, 1 to MaxQuota, or all that count now if they are
	// fewer: those above the quota first, then the newest. Lockouts, token buckets with a quota of
	// 0, and blocks do not change. The results are those of an OpPeek with cost 0 afterwards.
	OpGrant
	// OpReset removes the counters and blocks of the keys.
	OpReset
	// OpBlock denies the keys for Batch.For, in every process that shares the counters. Until then
	// Remaining is 0, and RetryAfter at least the rest of the block. A For of 0 ends a block.
	OpBlock
	// OpResetAll removes the counters of all keys of all rules. The batch has no items. Hits
	// charged meanwhile may stay.
	OpResetAll

	// AllOps are all operations.
	AllOps = OpTake | OpPeek | OpCharge | OpRefund | OpGrant | OpReset | OpBlock | OpResetAll
)

var ops = [...]string{"take", "peek", "charge", "refund", "grant", "reset", "block", "reset all"}

// String returns the operation as a verb, such as "take".
func (o Op) String() string {
	if i := bits.TrailingZeros16(uint16(o)); i < len(ops) && o == 1<<i {
		return ops[i]
	}
	return fmt.Sprintf("Op(%#x)", uint16(o))
}

// Guarantees is what a [Store] promises.
type Guarantees struct {
	// Ops are the operations that the store knows, joined with |.
	Ops Op
	// Exact: all processes that share the counters together never allow more than a limit allows,
	// as long as the store's server answers.
	Exact bool
	// OneStep: all items of a Batch are decided on and charged in one step. Otherwise the store may
	// charge items, refund them if a later item is denied, and deny other takes meanwhile.
	OneStep bool
	// Shared: other processes or other Store values use the same counters.
	Shared bool
	// KeepsDeadline: every operation returns within the store's own deadline, even without one in
	// the context.
	KeepsDeadline bool
	// FailsFast: while the server does not answer, few operations wait for it. The others return at
	// once.
	FailsFast bool
	OnFailure OnFailure
}

// OnFailure is what a store does while its server does not answer.
type OnFailure uint8

const (
	// FailOpen means that the store may allow requests without counting them.
	FailOpen OnFailure = iota
	// FailLocal means that the store decides with counters of this process, and allows no more than
	// they do.
	FailLocal
	// FailClosed means that OpTake returns an error.
	FailClosed
)

var onFailures = [...]string{"fail open", "local", "fail closed"}

// String returns the mode, such as "fail open".
func (f OnFailure) String() string {
	if int(f) < len(onFailures) {
		return onFailures[f]
	}
	return fmt.Sprintf("OnFailure(%d)", uint8(f))
}

// StoreRule is a rule as a store gets it: checked, with names and defaults filled in.
type StoreRule struct {
	Name   string
	Limits []Limit
	// DenyUnreadable denies a key for the rule's shortest window if its stored value is damaged or
	// in another format. If false, the value counts as absent. Both are logged. A value of a later
	// version of this module is never replaced.
	DenyUnreadable bool
}

// StoredKey returns the name of a key's counters in a store outside the process:
//
//	fg1:limiter:rule:hash
//
// The hash is 128 bits of the key's SHA-256 in base64url. The key is Item.Key: the Key of a [Hit]
// and a zero byte. A name has at most 156 characters, 0-9 A-Z a-z : _ . -, and reveals no text of a
// client. Names change only with a major version.
func (r StoreRule) StoredKey(limiter string, key []byte) string {
	sum := sha256.Sum256(key)
	buf := make([]byte, 0, 160)
	buf = append(buf, "fg1:"...)
	buf = append(buf, limiter...)
	buf = append(buf, ':')
	buf = append(buf, r.Name...)
	buf = append(buf, ':')
	return string(base64.RawURLEncoding.AppendEncode(buf, sum[:16]))
}

// Batch is an operation with its input and output. The caller owns it and all that it points to: a
// store keeps no reference.
type Batch struct {
	Op Op
	// For is the length of an OpBlock: 0 to MaxWindow.
	For time.Duration
	// Items are the keys of the operation. No two have the same Rule and Key.
	Items []Item
	// Allowed is set by the store: every limit allows its item's cost, and no key is blocked.
	Allowed bool
	// Degraded is set by a store that decided without the shared counters.
	Degraded bool
	// Cached is set by a store that denied from a cached denial.
	Cached bool
}

// Item is one key of one rule.
type Item struct {
	// Rule is the index of the rule in those of Open.
	Rule int
	// Key is any bytes of any length.
	Key []byte
	// Cost is the number of hits, 0 or more. 0 is always allowed and changes nothing.
	Cost int64
	// Quotas replace Limit.Quota for this batch, one for each limit in order, each in the range of
	// Limit.Quota or [Unlimited]. nil: the limits' own. A token bucket's burst changes in
	// proportion, rounded down, and is at least 1; its debt is paid off at the quota of the last
	// charge. An Unlimited limit charges every cost as OpCharge does, and its Result is computed
	// with Limit.Quota.
	Quotas []int64
	// At is the time of the decision by the store's clock, in microseconds since the Unix epoch.
	// The store sets it.
	At int64
	// Results has one element for each limit of the rule, in order. The caller allocates it, and
	// the store fills it.
	Results []Result
	// Unknown is set by a store that did not look at this item because another one is denied. Its
	// Results then mean nothing. The caller sets it to false.
	Unknown bool
}

// quota returns the quota of a limit for package meter.
func (it *Item) quota(limit int) int64 {
	if it.Quotas == nil {
		return meter.Own
	}
	return it.Quotas[limit]
}

// Result is the state of one limit for one key after an operation. Remaining and the durations mean
// the same as those of [Decision], for the cost of the item.
type Result struct {
	// Allowed reports whether this limit by itself allows the cost.
	Allowed    bool
	Remaining  int64
	ResetAfter time.Duration
	MoreAfter  time.Duration
	RetryAfter time.Duration
}
