package observe

import (
	"slices"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// QueueCounts are the numbers of a rule whose requests may wait for their turn: see
// core.Config.MaxWait and [core.Limiter.Wait].
type QueueCounts struct {
	// Rule is "" for requests that failed after they had waited.
	Rule string
	// Waiting is how many requests of this process are in line now, for all keys together.
	Waiting int64
	// Waits are the requests that have waited, by their result.
	Waits []WaitCounts
}

// WaitCounts are how long requests with one result have waited.
type WaitCounts struct {
	// Result is Allowed, Denied or Failed. A request whose client hung up in line is Denied.
	Result string
	Durations
}

// queue has the counts of a rule's lines.
type queue struct {
	rule    string
	waiting atomic.Int64
	took    [3]durations // by the result: see waitResults
}

var waitResults = [3]string{Allowed, Denied, Failed}

// queue returns the lines of a rule. A rule without MaxWait has lines after a call of Limiter.Wait.
func (l *limiter) queue(rule string) *queue {
	return find(&l.mu, &l.queues, func(q *queue) bool { return q.rule == rule }, func() *queue {
		q := &queue{rule: rule}
		for i := range q.took {
			q.took[i] = newDurations(requestBounds)
		}
		return q
	})
}

// waited counts a request that has waited in the line of a rule.
func (l *limiter) waited(rule string, d *core.Decision) {
	result := 0
	switch {
	case d.Reason == core.ReasonFailed:
		result = 2
	case !d.Allowed:
		result = 1
	}
	l.queue(rule).took[result].add(d.Waited)
}

func (q *queue) read() QueueCounts {
	n := QueueCounts{Rule: q.rule, Waiting: q.waiting.Load()}
	for i := range q.took {
		if d := q.took[i].read(); slices.Max(d.Buckets) > 0 {
			n.Waits = append(n.Waits, WaitCounts{waitResults[i], d})
		}
	}
	return n
}
