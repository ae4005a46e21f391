package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

// call is one decision, refund or reset of one caller, from its items to its
// result. It travels to the server alone or with the calls of other callers: see
// exchange. Calls are pooled. A call that has not ended by the deadline is left to
// the exchange that it is in.
type call struct {
	operation
	store  *Store
	verb   byte
	items  []callItem
	resets []int64 // for a refund: of all limits of all items
	time   int64   // by the application's clock; 0: the server's time
	weight int
	state  atomic.Int32

	line  *joining.Line[*call] // nil: it has not been started
	timer *time.Timer
	done  chan struct{} // has an element once the result is there
	reply reply
	err   error
}

type callItem struct {
	name  string
	rule  *counterRule
	texts any // of the limits, as the script reads them
	cost  int64
	at    int64
	place int // of the limits among the arguments
}

// The states of a call.
const (
	unsent    = iota
	sent      // it may have run
	withdrawn // it must not be sent any more
)

var calls = sync.Pool{New: func() any {
	c := &call{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	c.timer.Stop()
	return c
}}

// newCall returns a call for the items.
func (s *Store) newCall(op operation, verb byte, items []namedItem) *call {
	c := calls.Get().(*call)
	c.operation, c.store, c.verb, c.time, c.weight = op, s, verb, s.now(), callWeight
	c.state.Store(unsent)
	for i := range items {
		it := &items[i]
		texts, weight := it.rule.textsOf(it.Item, it.rule.textFor(s, c.time))
		c.items = append(c.items, callItem{name: it.name, rule: it.rule, texts: texts, cost: it.Cost})
		c.weight += weight
		if verb == verbRefund {
			c.items[i].at = it.At
			for j := range it.Results {
				c.resets = append(c.resets, it.Results[j].ResetAfter.Microseconds())
			}
		}
	}
	return c
}

// do makes a call and returns its reply. It returns within the operation's time, whatever the
// client does.
func (s *Store) do(op operation, verb byte, items []namedItem) (reply, error) {
	r, err := s.doOnce(op, verb, items)
	for i := 1; i < mostEdges && s.learns(err); i++ {
		r, err = s.doOnce(op, verb, items)
	}
	return r, err
}

func (s *Store) doOnce(op operation, verb byte, items []namedItem) (reply, error) {
	c := s.newCall(op, verb, items)
	// On the caller's goroutine, the store's deadline ends the command, and nothing else does.
	deadline, ends := op.ctx.Deadline()
	if s.here.ready(op.end.Add(-s.options.timeout)) && !(ends && deadline.Before(op.end)) {
		c.line = s.lineOf(c)
		c.line.Do(c)
	} else {
		s.start(c)
	}
	return c.wait()
}

// start sends the call, without waiting for its reply.
func (s *Store) start(c *call) {
	c.line = s.lineOf(c)
	c.line.Go(c)
}

// wait returns the reply if it comes in time. Then the call goes back to the pool.
func (c *call) wait() (reply, error) {
	for waited := false; ; waited = true {
		select {
		case <-c.done: // a reply that has come is used, however late it is
			return c.result()
		default:
		}
		left := time.Until(c.end)
		if left <= 0 {
			return reply{}, &Error{Class: ClassTimedOut, Unknown: !c.withdraw(), Err: context.DeadlineExceeded}
		}
		if c.state.Load() == unsent {
			if waited {
				c.line.Push()
			}
			left = min(left, c.store.patience) // the exchanges that Push has begun may be stuck, too
		}
		c.timer.Reset(left)
		select {
		case <-c.done:
			return c.result()
		case <-c.ctx.Done():
			// The charge of a client that has hung up counts: only the waiting ends.
			c.timer.Stop()
			return reply{}, c.canceled()
		case <-c.timer.C:
		}
	}
}

func (c *call) result() (r reply, err error) {
	r, err = c.reply, c.err
	c.timer.Stop()
	c.free()
	return r, err
}

func (c *call) free() {
	clear(c.items)
	c.items, c.resets = c.items[:0], c.resets[:0]
	c.store, c.ctx, c.line, c.reply, c.err = nil, nil, nil, reply{}, nil
	calls.Put(c)
}

// finish is called by the exchange, once for each call that it was given, when reply and err are
// there.
func (c *call) finish() { c.done <- struct{}{} }

var errWithdrawn = errors.New("the deadline passed before the command was sent")

// send is called when the call is written to a connection. It returns false if the
// call must not be sent any more. A client that follows a redirect (MOVED, ASK)
// writes the call more than once.
func (c *call) send(now time.Time) bool {
	if now.After(c.end) {
		c.withdraw() // its caller has hung up
	}
	return c.state.CompareAndSwap(unsent, sent) || c.state.Load() == sent
}

// sent reports whether the call may have run.
func (c *call) sent() bool { return c.state.Load() == sent }

// ranNot notes a reply which proves that the call has not run. A client that gathers commands may
// still send it.
func (c *call) ranNot() {
	if !c.store.gathers {
		c.state.CompareAndSwap(sent, unsent)
	}
}

// withdraw keeps the call from being sent. It returns false if it may have been
// sent already.
func (c *call) withdraw() bool { return c.state.CompareAndSwap(unsent, withdrawn) }

// gone reports whether the call has been withdrawn.
func (c *call) gone() bool { return c.state.Load() == withdrawn }

// namedItem is an item with the store's data for it.
type namedItem struct {
	*core.Item
	rule *counterRule
	name string
}

// lines are where calls wait to be sent together. Only calls whose keys may be in
// one command are in the same line.
type lines struct {
	whole *joining.Line[*call] // all keys are on one server
	alone *joining.Line[*call] // each call is an exchange of its own
	slots atomic.Pointer[[slots]atomic.Pointer[joining.Line[*call]]]
}

const (
	// The most calls in an exchange, and the most microseconds that the server
	// probably needs for an exchange of two or more: no other client of the server
	// waits for longer.
	mostCalls, mostWeight = 64, 400
	// mostAlone is the highest number of exchanges under way that have one call
	// each. Those that wait in the client for a connection count too, so that it is
	// far above any pool. It bounds how many pile up if a server does not answer.
	mostAlone = 8192
	// mostStuck bounds in the same way the exchanges without an answer.
	mostStuck = 1024
	// longestPatience is the longest time that a call waits for exchanges before it.
	longestPatience = 10 * time.Millisecond
)

func (s *Store) newLine(most, atOnce, stuck int) *joining.Line[*call] {
	return joining.New(joining.Config[*call]{
		Send:   s.send,
		Weight: func(c *call) int { return c.weight },
		Gone:   (*call).gone,
		Most:   most, MostWeight: mostWeight, AtOnce: atOnce, Patience: s.patience, MostStuck: stuck,
	})
}

// lineOf returns the line of the calls that the call may be sent together with.
func (s *Store) lineOf(c *call) *joining.Line[*call] {
	switch layout := s.layout.Load(); {
	case layout == eachKey || len(c.items) == 0:
		return s.lines.alone
	case layout == anyKeys:
		return s.lines.whole
	}
	all := s.lines.slots.Load()
	if all == nil {
		s.lines.slots.CompareAndSwap(nil, new([slots]atomic.Pointer[joining.Line[*call]]))
		all = s.lines.slots.Load()
	}
	of := &all[slotOf(c.items[0].name)]
	if of.Load() == nil {
		of.CompareAndSwap(nil, s.newLine(mostCalls, 0, mostStuck))
	}
	return of.Load()
}
