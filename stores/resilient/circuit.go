package resilient

import (
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// circuit is the circuit breaker of one server, and reports its changes.
type circuit struct {
	server  string // "" means the store as a whole
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	config  *Config
	outages atomic.Uint64 // grows when the server may have lost what it had

	mu      sync.Mutex
	failing bool // the last operation that says something about the server failed
	down    bool
	cause   error     // of the failure that the breaker was last told of
	logged  time.Time // when a failure was last logged
	told    bool      // the present failures have been logged
	lost    time.Time // when outages grew last because of a failure
	notes   []note    // not yet reported
	telling bool      // a caller is reporting
}

// note is a report to make: a failure, if it is the first of several, a change,
// or both.
type note struct {
	failure error
	change  *Change
}

// logAgain is the shortest time between two logged failures that each follow a
// success.
const logAgain = time.Minute

// errNoTrouble wraps errors that say nothing about the store.
var errNoTrouble = errors.New("not the store's fault")

func newCircuit(server string, c *Config) *circuit {
	k := &circuit{server: server, config: c}
	k.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          "floodgate",
		MaxRequests:   1, // one probe at a time
		Timeout:       lengthened(c.Retry),
		ReadyToTrip:   func(n gobreaker.Counts) bool { return int64(n.ConsecutiveFailures) >= int64(c.Failures) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errNoTrouble) },
		OnStateChange: k.changed,
	})
	return k
}

// lengthened returns retry and a random part of up to a quarter of it, or the longest
// Duration if the sum is none: to the breaker, a negative one means a minute.
func lengthened(retry time.Duration) time.Duration {
	return retry + min(rand.N(retry/4+1), math.MaxInt64-retry)
}

// changed notes a change of state; the breaker calls it under its lock. It
// notes nothing if a probe has failed again.
func (k *circuit) changed(_ string, _, to gobreaker.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case to == gobreaker.StateOpen && !k.down:
		k.down = true
		k.outages.Add(1)
		n := note{change: &Change{Server: k.server, Err: k.cause}}
		if !k.told {
			n.failure, k.told = k.cause, true
		}
		k.notes = append(k.notes, n)
	case to == gobreaker.StateClosed && k.down:
		k.down = false
		k.notes = append(k.notes, note{change: &Change{Server: k.server, Up: true}})
	}
}

func (k *circuit) up() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.down
}

// ticket is the permission to ask a server.
type ticket struct {
	circuit *circuit
	tell    func(error)
}

// allow returns the permission to ask the server, or ErrDown. The caller must
// call the ticket's done with the result.
func (k *circuit) allow() (ticket, error) {
	tell, err := k.breaker.Allow()
	if err != nil {
		return ticket{}, ErrDown // one value, because this path must cost next to nothing
	}
	return ticket{k, tell}, nil
}

// done tells the circuit how the operation has ended, and reports what has changed.
func (t ticket) done(err error, trouble bool) {
	t.end(err, trouble)
	t.circuit.report()
}

// end tells the circuit how the operation has ended. trouble means that the
// error shows the server to be out of order.
func (t ticket) end(err error, trouble bool) {
	k := t.circuit
	switch {
	case trouble:
		k.failed(err)
	case err != nil:
		err = errors.Join(errNoTrouble, err)
	default:
		k.succeeded()
	}
	t.tell(err)
}

// failed notes a failure. The first of a row is logged at once, with its cause.
func (k *circuit) failed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cause = err
	now := time.Now()
	if !slow(err) && now.Sub(k.lost) >= k.config.Retry {
		k.lost = now
		k.outages.Add(1)
	}
	if k.failing {
		return
	}
	k.failing = true
	if !k.told && (k.logged.IsZero() || now.Sub(k.logged) >= logAgain) {
		k.logged, k.told = now, true
		k.notes = append(k.notes, note{failure: err})
	}
}

func (k *circuit) succeeded() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failing, k.told = false, false
}

// report reports what has been noted, in order, under no lock.
func (k *circuit) report() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.telling {
		return // the caller that is reporting reports this note too
	}
	k.telling = true
	defer func() { k.telling = false }() // also if OnChange panics
	for len(k.notes) > 0 {
		n := k.notes[0]
		k.notes = k.notes[1:]
		k.tellOne(n)
	}
}

// tellOne reports one note, unlocked meanwhile.
func (k *circuit) tellOne(n note) {
	k.mu.Unlock()
	defer k.mu.Lock()
	var attrs []any
	if k.server != "" {
		attrs = append(attrs, slog.String("server", k.server))
	}
	if n.failure != nil {
		k.config.Log.Warn("the shared counters do not answer", append(attrs, slog.String("meanwhile", k.config.Meanwhile.String()), slog.Any("error", n.failure))...)
	}
	if n.change == nil {
		return
	}
	if n.change.Up {
		k.config.Log.Info("the shared counters answer again", attrs...)
	}
	if k.config.OnChange != nil {
		k.config.OnChange(*n.change)
	}
}
