package redisstore

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

// operation is one call of a method. Its caller waits until its context or its deadline ends.
type operation struct {
	ctx context.Context // the caller's
	end time.Time       // of the store's own deadline
}

func (s *Store) begin(ctx context.Context) operation {
	return operation{ctx, time.Now().Add(s.options.timeout)}
}

// call is one decision, refund or reset of one caller, from its items to its result. It travels to
// the server alone or with the calls of other callers: see exchange. Calls are pooled, except one
// whose caller has left: its exchange may still use it.
type call struct {
	operation
	store  *Store
	verb   byte
	items  []item
	resets []int64 // for a refund: of all limits of all items
	time   int64   // by the application's clock, or serverTime
	weight int
	answer int // bytes of the reply
	state  atomic.Int32

	line  *joining.Line[*call]
	timer *time.Timer
	done  chan struct{} // gets an element, once, when reply and err are there
	reply reply
	err   error
}

// serverTime lets the server's clock decide. No other clock shows it.
const serverTime = math.MinInt64

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
func (s *Store) newCall(op operation, verb byte, items []item) *call {
	c := calls.Get().(*call)
	c.operation, c.store, c.verb, c.time, c.weight = op, s, verb, serverTime, callWeight
	if s.options.clock != nil {
		c.time = s.options.clock().UnixMicro()
	}
	c.state.Store(unsent)
	c.answer = 0
	if verb <= verbGrant {
		c.answer = replyTime
	}
	c.items = append(c.items, items...)
	for i := range items {
		it := &c.items[i]
		c.weight += it.rule.weight
		if verb <= verbGrant {
			c.answer += it.rule.answer
		}
		if verb == verbRefund {
			it.at = it.of.At
			for j := range it.of.Results {
				c.resets = append(c.resets, it.of.Results[j].ResetAfter.Microseconds())
			}
		}
		it.of = nil // the caller's
	}
	c.line = s.lineOf(items)
	return c
}

// do makes a call and returns its reply. It returns within the operation's time, whatever the
// client does.
func (s *Store) do(op operation, verb byte, items []item) (reply, error) {
	c := s.newCall(op, verb, items)
	// On the caller's goroutine, only the store's deadline ends the command.
	deadline, ends := op.ctx.Deadline()
	if s.inTime && !(ends && deadline.Before(op.end)) {
		c.line.Do(c)
	} else {
		c.line.Go(c)
	}
	return c.wait()
}

// wait returns the reply if it comes in time. Then the call goes back to the pool.
func (c *call) wait() (r reply, err error) {
answer:
	for waited := false; ; waited = true {
		select {
		case <-c.done: // a reply that has come is used, however late it is
			break answer
		default:
		}
		left := time.Until(c.end)
		if left <= 0 {
			return reply{}, &Error{Unknown: !c.withdraw(), Err: context.DeadlineExceeded}
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
			break answer
		case <-c.ctx.Done():
			// The charge of a client that has hung up counts: only the waiting ends.
			c.timer.Stop()
			return reply{}, &Error{Unknown: true, Err: context.Cause(c.ctx)}
		case <-c.timer.C:
		}
	}
	r, err = c.reply, c.err
	c.timer.Stop()
	clear(c.items)
	c.items, c.resets = c.items[:0], c.resets[:0]
	c.store, c.ctx, c.line, c.reply, c.err = nil, nil, nil, reply{}, nil
	calls.Put(c)
	return r, err
}

var errWithdrawn = fmt.Errorf("%w before the command was sent", context.DeadlineExceeded)

// markSent is called when the call is written to a connection. It returns false if the call must
// not be sent any more. A client that follows a redirect (MOVED, ASK) writes the call more than
// once.
func (c *call) markSent() bool {
	return !c.gone() && (c.state.CompareAndSwap(unsent, sent) || c.state.Load() == sent)
}

// markUnsent is called after a reply which proves that the call has not run.
func (c *call) markUnsent() { c.state.CompareAndSwap(sent, unsent) }

// withdraw keeps the call from being sent. It returns false if the call may have been sent already.
func (c *call) withdraw() bool {
	return c.state.CompareAndSwap(unsent, withdrawn) || c.state.Load() == withdrawn
}

// gone reports whether the call must not be sent any more. A call whose caller has hung up is
// withdrawn by nobody else when its deadline has passed.
func (c *call) gone() bool {
	if time.Until(c.end) < 0 {
		return c.withdraw()
	}
	return c.state.Load() == withdrawn
}

const (
	// The most calls in an exchange, and the most microseconds that the server probably needs for
	// an exchange of two or more: no other client of the server waits for longer.
	mostCalls, mostWeight = 64, 400
	// mostAlone is the highest number of exchanges under way that have one call each. Those that
	// wait in the client for a connection count too, so that it is far above any pool. It bounds
	// how many pile up if a server does not answer.
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

// lineOf returns the line of the calls that a call for these items may share a command with.
func (s *Store) lineOf(items []item) *joining.Line[*call] {
	switch layout := s.layout.Load(); {
	case layout == eachKey || len(items) == 0:
		return s.alone
	case layout == anyKeys:
		return s.whole
	}
	slot := slotOf(items[0].name)
	line, found := s.slots.Load(slot)
	if !found {
		line, _ = s.slots.LoadOrStore(slot, s.newLine(mostCalls, 0, mostStuck))
	}
	return line.(*joining.Line[*call])
}
