// Package names keeps two limiters of one process from sharing counters by accident: a store binds
// a limiter's name once, and of several stores that count on one server, one binds it.
package names

import (
	"errors"
	"fmt"
	"sync"
)

// Owner has the limiter names that one store has bound. Its methods may be called concurrently.
type Owner struct {
	server string
	apart  bool

	mu    sync.Mutex
	names map[string]bool
}

// New returns the owner of the names of a store that counts on this server. If apart is true, they
// are compared with no other store's, and server is not used.
func New(server string, apart bool) *Owner {
	return &Owner{server: server, apart: apart, names: map[string]bool{}}
}

// claim is a name on a server.
type claim struct{ server, name string }

// claims are the names that the stores of this process have bound.
var claims struct {
	sync.Mutex
	taken map[claim]bool
}

var errTwice = errors.New("this store already counts for a limiter of that name")

// Claim claims a limiter's name. The error names the store that has it. The caller puts
// core.ErrConfig and the name before it.
func (o *Owner) Claim(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.names[name] {
		return errTwice
	}
	if !o.apart {
		claims.Lock()
		defer claims.Unlock()
		if claims.taken == nil {
			claims.taken = map[claim]bool{}
		}
		if claims.taken[claim{o.server, name}] {
			return fmt.Errorf("another store of this process already counts on %s for a limiter of that name: "+
				"give one of the limiters another name, close the other store first, or make this one with AnotherInstance()", o.server)
		}
		claims.taken[claim{o.server, name}] = true
	}
	o.names[name] = true
	return nil
}

// Unclaim gives up a name.
func (o *Owner) Unclaim(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(name)
}

// Release gives up all names.
func (o *Owner) Release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.names {
		o.release(name)
	}
}

func (o *Owner) release(name string) {
	if !o.names[name] {
		return
	}
	delete(o.names, name)
	if o.apart {
		return
	}
	claims.Lock()
	defer claims.Unlock()
	delete(claims.taken, claim{o.server, name})
}
