package resilient

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/sony/gobreaker/v2"
)

// circuit is the circuit breaker, and tells who wants to know of its changes.
type circuit struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	config  Config

	mu      sync.Mutex
	down    bool
	cause   error    // of the failure that the breaker was last told of
	changes []Change // not yet reported
	telling bool     // somebody is reporting
}

// errNoTrouble wraps what says nothing about the store.
var errNoTrouble = errors.New("not the store's fault")

func newCircuit(c Config) *circuit {
	k := &circuit{config: c}
	k.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          "floodgate",
		MaxRequests:   1, // one probe at a time
		Timeout:       c.Retry + rand.N(c.Retry/4+1),
		ReadyToTrip:   func(n gobreaker.Counts) bool { return int64(n.ConsecutiveFailures) >= int64(c.Failures) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errNoTrouble) },
		OnStateChange: k.changed,
	})
	return k
}

// changed is called by the breaker, which is locked meanwhile: it only notes.
// That a probe has failed again is no change.
func (k *circuit) changed(_ string, _, to gobreaker.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case to == gobreaker.StateOpen && !k.down:
		k.down = true
		k.changes = append(k.changes, Change{Err: k.cause})
	case to == gobreaker.StateClosed && k.down:
		k.down = false
		k.changes = append(k.changes, Change{Up: true})
	}
}

func (k *circuit) up() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.down
}

// allow asks whether the store is to be asked. done is to be called with what
// came of it, and whether that is trouble.
func (k *circuit) allow() (done func(err error, trouble bool), err error) {
	tell, err := k.breaker.Allow()
	if err != nil {
		return nil, ErrDown // one value: this is the way that is to cost next to nothing
	}
	return func(err error, trouble bool) {
		switch {
		case trouble:
			k.mu.Lock()
			k.cause = err
			k.mu.Unlock()
		case err != nil:
			err = errors.Join(errNoTrouble, err)
		}
		tell(err)
		k.report()
	}, nil
}

// report tells of what has changed, in order, under no lock.
func (k *circuit) report() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.telling {
		return // whoever is at it tells this too
	}
	k.telling = true
	defer func() { k.telling = false }() // also where OnChange panics
	for len(k.changes) > 0 {
		c := k.changes[0]
		k.changes = k.changes[1:]
		k.tell(c)
	}
}

// tell reports one change, unlocked meanwhile.
func (k *circuit) tell(c Change) {
	k.mu.Unlock()
	defer k.mu.Lock()
	if c.Up {
		k.config.Log.Info("the shared counters answer again")
	} else {
		k.config.Log.Warn("the shared counters do not answer", slog.String("meanwhile", k.config.Meanwhile.String()), slog.Any("error", c.Err))
	}
	if k.config.OnChange != nil {
		k.config.OnChange(c)
	}
}
