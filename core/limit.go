package core

import "time"

// Algorithm is how the hits of a window are counted.
type Algorithm uint8

const (
	// SlidingWindow weighs the previous window's count by the part of it that
	// a window ending now still covers, and adds the current one's. Two
	// numbers a key. The default.
	SlidingWindow Algorithm = iota
	// FixedWindow counts from the first hit until the window ends, then starts
	// again. One number a key; a burst on both sides of the end passes 2 ×
	// Quota.
	FixedWindow
	// BucketedWindow keeps one count for each Precision. No window ever holds
	// more than Quota; Window/Precision + 1 numbers a key.
	BucketedWindow
	// SlidingLog keeps the time of every hit. Exact; up to Quota numbers of 8
	// bytes a key, all of them after one hit that costs the whole Quota. See
	// MemoryConfig.MaxKeys for what that takes in this process.
	SlidingLog
	// TokenBucket allows hits at an even rate, after a burst (GCRA). One
	// number a key.
	TokenBucket
	// Leases counts what is under way rather than hits: Quota is the most requests
	// that may run at a time, and a request gives its place back when it is done.
	// See [InFlight], which returns such a limit, and [Limiter.Acquire].
	//
	// Window is the lease: how long a process that has died keeps its places in a
	// shared store, a second or more. A process that runs renews its leases for as
	// long as its requests run. Counters in this process do not need it.
	//
	// It has no exact waits: RetryAfter of a request that is denied is a second, and
	// ResetAfter and MoreAfter are 0. About 24 bytes for each request in flight. A
	// rule has one such limit at most.
	Leases
)

// The range of a Limit's fields.
const (
	MinWindow   = time.Millisecond     // shortest Window and Precision
	MaxWindow   = 366 * 24 * time.Hour // longest Window
	MaxQuota    = 1<<31 - 1            // largest Quota and Burst
	MaxLogQuota = 10_000               // largest Quota of a SlidingLog, which keeps every hit, and of Leases
	MaxBuckets  = 4096                 // most buckets (Window/Precision) of a BucketedWindow
	// MaxRefill is the longest time that an empty token bucket may take to
	// fill: Window × Burst / Quota.
	MaxRefill = 36_500 * 24 * time.Hour
)

// Month is the Window of a limit whose windows are the months of a Zone. Without
// a Zone it is 31 days.
const Month = 31 * 24 * time.Hour

// Limit is a quota of hits for a window. The zero Algorithm is SlidingWindow.
// A Limit is a plain value; New checks it. Limits can be compared with ==; those
// that differ in the pointer Zone only mean the same if the zones' names are equal.
type Limit struct {
	// Name names the limit in response headers and audit logs, and must be unique
	// among the limits of a Limiter: 1 to 64 of the characters A-Z a-z 0-9 _ . -
	// Empty means the rule's name, followed by "-" and the window if the rule has
	// several limits.
	Name string
	// Quota is the number of hits allowed in a Window, 0 (none) to MaxQuota;
	// for SlidingLog and Leases to MaxLogQuota. Of Leases, the most at a time.
	Quota int64
	// Window is the length of time for which Quota is allowed: MinWindow to MaxWindow, in
	// whole microseconds. Of Leases, how long a lease lasts if nobody renews it: a
	// second or more.
	Window time.Duration
	// Algorithm is how hits are counted.
	Algorithm Algorithm
	// Aligned makes the windows of FixedWindow and SlidingWindow begin at
	// multiples of Window since the Unix epoch (UTC) for all keys, rather than
	// at each key's first hit. Other algorithms: must be false.
	Aligned bool
	// Burst is the most hits that a TokenBucket allows at once, up to
	// MaxQuota. 0 means Quota. Other algorithms have none: must be 0.
	Burst int64
	// Precision is the length of a bucket of a BucketedWindow: MinWindow or
	// more, in whole microseconds, a divisor of Window; there are at most
	// MaxBuckets. Other algorithms have none: must be 0.
	Precision time.Duration
	// Zone makes the windows of a FixedWindow those of the calendar in a time zone:
	// its days if Window is 24 hours, its weeks from Monday if it is 7 days, its
	// months if it is Month. Each begins at its first instant and ends at the first
	// instant of the next one, whatever the zone's clock does between: a day may
	// have 23 hours, or not begin at midnight. See [Limit.In]. nil: windows have the
	// length of Window.
	//
	// Counters are named by the zone's name. It must be the same in every process
	// that shares the counters, so [time.Local] is an error. Other algorithms, and
	// limits with Aligned or a Lockout: must be nil.
	Zone *time.Location
	// Lockout adds escalating waits to a FixedWindow limit: see [Lockout]. Other
	// algorithms: must be the zero value.
	Lockout Lockout
}

// PerSecond returns a SlidingWindow limit of quota hits per second.
func PerSecond(quota int64) Limit { return Limit{Quota: quota, Window: time.Second} }

// PerMinute returns a SlidingWindow limit of quota hits per minute.
func PerMinute(quota int64) Limit { return Limit{Quota: quota, Window: time.Minute} }

// PerHour returns a SlidingWindow limit of quota hits per hour.
func PerHour(quota int64) Limit { return Limit{Quota: quota, Window: time.Hour} }

// PerDay returns a SlidingWindow limit of quota hits per 24 hours. With
// [Limit.In] it is per day of the calendar.
func PerDay(quota int64) Limit { return Limit{Quota: quota, Window: 24 * time.Hour} }

// PerWeek returns a SlidingWindow limit of quota hits per 7 days. With
// [Limit.In] it is per week of the calendar, which begins on Monday.
func PerWeek(quota int64) Limit { return Limit{Quota: quota, Window: 7 * 24 * time.Hour} }

// PerMonth returns a FixedWindow limit of quota hits per month of the calendar:
// from the first at midnight, in UTC. [Limit.In] changes the time zone.
func PerMonth(quota int64) Limit {
	return Limit{Quota: quota, Window: Month, Algorithm: FixedWindow, Zone: time.UTC}
}
