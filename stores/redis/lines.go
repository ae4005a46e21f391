package redisstore

import (
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

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
