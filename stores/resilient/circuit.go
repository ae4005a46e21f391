package resilient

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Locator is a core.Counters that reports which server has a key, as memcachedstore's does. Each
// server then has a circuit of its own.
type Locator interface {
	// ServerOf returns the name of the server that has the counters of a key of the rule with this
	// index, such as "10.0.0.1:11211"; "" if it is not known. It must not wait for anything.
	ServerOf(rule int, key []byte) string
}

// circuit is the circuit breaker of one server. It is closed while the server answers. While it is
// open, no operation asks the server, except for one at a time that tries whether it answers again.
type circuit struct {
	config *Config
	server string // "" means the store as a whole

	mu       sync.Mutex
	failures int // in a row
	open     bool
	trying   bool
	retryAt  time.Time
	warned   bool      // the failures in a row have been logged
	logged   time.Time // when a failure was last logged
}

// logAgain is the shortest time between two logged failures that each follow a success.
const logAgain = time.Minute

// ticket is the permission of one operation to ask a server. Its holder must call end.
type ticket struct {
	*circuit
	seen int  // the failures in a row when it was given, so that of overlapping failures one counts
	try  bool // the circuit is open
}

// outcome is what the end of an operation shows about a server.
type outcome uint8

const (
	nothing outcome = iota
	answered
	failed
)

// allow returns a ticket; false while the circuit is open and no try is due.
func (k *circuit) allow() (ticket, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open {
		if k.trying || time.Now().Before(k.retryAt) {
			return ticket{}, false
		}
		k.trying = true
	}
	return ticket{k, k.failures, k.open}, true
}

// end notes the outcome, with the error if it is failed. It returns what the caller must report,
// after the lock is released.
func (t ticket) end(o outcome, err error) (n report) {
	k := t.circuit
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.try {
		k.trying = false
	} else if k.open {
		return n // the operation began before the circuit opened
	}
	switch {
	case o == answered:
		if k.open {
			n.change = &Change{Server: k.server, Up: true}
		}
		k.failures, k.open, k.warned = 0, false, false
	case o == failed && t.try:
		k.wait()
	case o == failed && t.seen == k.failures:
		k.failures++
		if k.failures >= k.config.Failures {
			k.open = true
			k.wait()
			n.change = &Change{Server: k.server, Err: err}
		}
		if now := time.Now(); !k.warned && (k.open || now.Sub(k.logged) >= logAgain) {
			k.warned, k.logged, n.failure = true, now, err
		}
	}
	return n
}

// report is what must be logged and passed to OnChange; the zero value: nothing.
type report struct {
	failure error // to be logged
	change  *Change
}

func (k *circuit) publish(limiter string, n report) {
	log := k.config.Log.With("limiter", limiter)
	if k.server != "" {
		log = log.With("server", k.server)
	}
	if n.failure != nil {
		log.Warn("the shared counters do not answer", "on_failure", k.config.OnFailure.String(), "error", n.failure)
	}
	if n.change != nil && n.change.Up {
		log.Info("the shared counters answer again")
	}
	if n.change != nil && k.config.OnChange != nil {
		k.config.OnChange(*n.change)
	}
}

// wait sets the time of the next try.
func (k *circuit) wait() {
	k.retryAt = time.Now().Add(k.config.Retry).Add(rand.N(k.config.Retry/4 + 1))
}

func (k *circuit) up() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.open
}

// circuit returns the circuit of a server.
func (s *Store) circuit(server string) *circuit {
	k, ok := s.circuits.Load(server)
	if !ok {
		k, _ = s.circuits.LoadOrStore(server, &circuit{config: &s.config, server: server})
	}
	return k.(*circuit)
}

// tickets appends to tickets one for each server that has a key of the batch; it returns false if
// one of the servers must not be asked.
func (c *counters) tickets(tickets []ticket, b *core.Batch) ([]ticket, bool) {
	if c.locator == nil || len(b.Items) == 0 {
		t, ok := c.whole.allow()
		return append(tickets, t), ok
	}
	for i := range b.Items {
		k := c.circuit(c.locator.ServerOf(b.Items[i].Rule, b.Items[i].Key))
		if slices.ContainsFunc(tickets, func(t ticket) bool { return t.circuit == k }) {
			continue
		}
		t, ok := k.allow()
		if !ok {
			for _, other := range tickets {
				other.end(nothing, nil)
			}
			return nil, false
		}
		tickets = append(tickets, t)
	}
	return tickets, true
}

// settle ends the tickets of an operation, and publishes their reports. A failure of keys on
// several servers counts against the server that the error names, else against all.
func (c *counters) settle(tickets []ticket, o outcome, err error) {
	named := -1
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Addr != nil {
			named = slices.IndexFunc(tickets, func(t ticket) bool { return t.server == op.Addr.String() })
		}
	}
	var room [2]report
	all := room[:0]
	for i, t := range tickets {
		blame := o
		if named >= 0 && i != named {
			blame = nothing
		}
		all = append(all, t.end(blame, err))
	}
	for i, n := range all { // last, because OnChange may panic
		if n.failure != nil || n.change != nil {
			tickets[i].publish(c.limiter, n)
		}
	}
}
