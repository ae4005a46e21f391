package core

import (
	"sync"
	"sync/atomic"
)

// Stats counts a limiter's decisions since it was made.
type Stats struct {
	Allowed     uint64 // allowed: within all limits, or no rule applied
	Denied      uint64 // denied: over a limit
	DryRun      uint64 // allowed, and would have been denied: Config.DryRun
	Skipped     uint64 // not limited: Hooks.ShouldLimit
	BadRequests uint64 // denied: the request was at fault
	Failed      uint64 // denied because of an error, and refunds, charges and resets that failed
	Canceled    uint64 // denied because the client had gone before the store had answered
	Degraded    uint64 // of all these, decided without the shared counters
	Waited      uint64 // of all these, decided after a wait: see Config.MaxWait
	Waiting     int    // requests that are waiting now
}

// Stats returns the limiter's counts. They may be read at any time, for a
// metrics collector for instance; no key is among them. Stats locks the parts of
// a [Memory] one after the other, which takes some ten microseconds in all: it is
// not for every request.
func (l *Limiter) Stats() Stats {
	var sum Stats
	if m := l.current.Load().memory; m != nil {
		sum.Allowed, sum.Denied = m.keys.Counted()
	}
	for i := range l.counts.stripes {
		s := &l.counts.stripes[i]
		sum.Allowed += s.allowed.Load()
		sum.Denied += s.denied.Load()
		sum.DryRun += s.dryRun.Load()
		sum.Skipped += s.skipped.Load()
		sum.BadRequests += s.badRequests.Load()
		sum.Failed += s.failed.Load()
		sum.Canceled += s.canceled.Load()
		sum.Degraded += s.degraded.Load()
		sum.Waited += s.waited.Load()
	}
	sum.Waiting = int(l.lines.waiting.Load())
	return sum
}

// counters are spread over stripes so that processors seldom write to the same
// cache line.
type counters struct {
	stripes [8]stripe
	next    atomic.Uint32

	failures failureLog
	panicked atomic.Bool // see observing
	near     sync.Pool   // of *stripe: what a processor gets back is what it had
}

// count counts a decision for which there is no session.
func (c *counters) count(d *Decision) {
	s, _ := c.near.Get().(*stripe)
	if s == nil {
		s = c.stripe()
	}
	s.count(d)
	c.near.Put(s)
}

type stripe struct {
	allowed, denied, dryRun, skipped, badRequests, failed, canceled, degraded, waited atomic.Uint64
	_                                                                                 [64]byte
}

func (c *counters) stripe() *stripe {
	return &c.stripes[int(c.next.Add(1))%len(c.stripes)]
}

func (s *stripe) count(d *Decision) {
	if d.Degraded {
		s.degraded.Add(1)
	}
	if d.Waited > 0 {
		s.waited.Add(1)
	}
	switch {
	case d.Reason == ReasonFailed:
		s.failed.Add(1)
	case d.Reason == ReasonCanceled:
		s.canceled.Add(1)
	case d.Reason == ReasonBadRequest:
		s.badRequests.Add(1)
	case d.Reason == ReasonSkipped:
		s.skipped.Add(1)
	case d.DryRun && d.Allowed:
		s.dryRun.Add(1)
	case d.Allowed:
		s.allowed.Add(1)
	default:
		s.denied.Add(1)
	}
}
