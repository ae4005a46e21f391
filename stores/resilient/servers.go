package resilient

import (
	"errors"
	"net"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// Locator is a core.Bound that reports on which server it keeps a counter, as
// that of memcachedstore does. Each server then has a circuit breaker of its
// own: if one server is down, the store still decides the keys of the others.
type Locator interface {
	// ServerOf returns the name of the server that has the counters of a key of
	// the rule with this index, such as "10.0.0.1:11211"; "" if it is not known.
	// It must not wait for anything.
	ServerOf(rule int, key []byte) string
}

// maxServers is the most servers that have a circuit of their own. The others
// share one.
const maxServers = 256

// circuits are the circuit breakers of a store, by server.
type circuits struct {
	config *Config
	whole  *circuit // of a store that does not report its servers

	mu       sync.RWMutex
	byServer map[string]*circuit
}

func newCircuits(c *Config) *circuits {
	return &circuits{config: c, whole: newCircuit("", c), byServer: map[string]*circuit{}}
}

func (c *circuits) of(server string) *circuit {
	if server == "" {
		return c.whole
	}
	c.mu.RLock()
	k := c.byServer[server]
	c.mu.RUnlock()
	if k != nil {
		return k
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k = c.byServer[server]; k == nil {
		if len(c.byServer) >= maxServers {
			return c.whole
		}
		k = newCircuit(server, c.config)
		c.byServer[server] = k
	}
	return k
}

// up reports whether no server is down.
func (c *circuits) up() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, k := range c.byServer {
		if !k.up() {
			return false
		}
	}
	return c.whole.up()
}

// tickets are the permissions that an operation needs: one for each server that
// its items are on.
type tickets struct {
	first ticket
	more  []ticket
}

// allow returns the tickets of a batch. It returns an error if one of the items
// is on a server that is down.
func (c *circuits) allow(where Locator, batch *core.Batch) (t tickets, err error) {
	if where == nil || len(batch.Items) == 0 {
		t.first, err = c.whole.allow()
		return t, err
	}
	for i := range batch.Items {
		it := &batch.Items[i]
		k := c.of(where.ServerOf(it.Rule, it.Key))
		if t.has(k) {
			continue
		}
		one, err := k.allow()
		if err != nil {
			t.done(errNotAsked, false)
			return tickets{}, err
		}
		if t.first.circuit == nil {
			t.first = one
		} else {
			t.more = append(t.more, one)
		}
	}
	return t, nil
}

var errNotAsked = errors.New("not asked: another server is down")

func (t *tickets) has(k *circuit) bool {
	for _, o := range t.more {
		if o.circuit == k {
			return true
		}
	}
	return t.first.circuit == k
}

// done tells the circuits of all servers how the operation has ended.
func (t *tickets) done(err error, trouble bool) {
	if t.first.circuit == nil {
		return
	}
	if len(t.more) == 0 {
		t.first.done(err, trouble)
		return
	}
	blamed := func(ticket) bool { return true }
	if trouble {
		blamed = t.culprits(err)
	}
	all := append([]ticket{t.first}, t.more...)
	for _, one := range all {
		one.end(err, trouble && blamed(one))
	}
	for _, one := range all { // last, because OnChange may panic
		one.circuit.report()
	}
}

// culprits returns a function that reports whether a failure counts against a
// ticket's server. The failure counts against the server that the error names;
// else against the servers that were down before, because this was their probe;
// else against all.
func (t *tickets) culprits(err error) func(ticket) bool {
	var op *net.OpError
	named := ""
	if errors.As(err, &op) && op.Addr != nil {
		named = op.Addr.String()
	}
	all := append([]ticket{t.first}, t.more...)
	some := func(is func(ticket) bool) bool {
		for _, one := range all {
			if is(one) {
				return true
			}
		}
		return false
	}
	isNamed := func(one ticket) bool { return named != "" && one.circuit.server == named }
	wasDown := func(one ticket) bool { return !one.circuit.up() }
	switch {
	case some(isNamed):
		return isNamed
	case some(wasDown):
		return wasDown
	default:
		return func(ticket) bool { return true }
	}
}
