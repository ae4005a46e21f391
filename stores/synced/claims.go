package synced

import "sync"

// claims has the namespaces that stores of this process use, by backend, so that
// two limiters of one name do not share counters by accident. Package names is
// for the names of one store: another store may bind the same name in another
// namespace, or through another backend.
var claims sync.Map // of claim

type claim struct {
	backend   Backend
	namespace string
}

// bindings has the names of limiters that stores of this process have bound, on
// servers that their backends name: two Backend values may lead to one server.
var bindings = struct {
	sync.Mutex
	stores map[binding]int
}{stores: map[binding]int{}}

type binding struct{ server, namespace, limiter string }

// binding returns the entry of a limiter in bindings, if the backend has a method
// Server.
func (s *Store) binding(limiter string) (b binding, ok bool) {
	n, ok := s.backend.(interface{ Server() string })
	if !ok {
		return binding{}, false
	}
	return binding{n.Server(), s.config.Namespace, limiter}, true
}

// claimName notes that the store has bound a limiter's name. It logs if another
// store of this process has bound the name on the same server: that works, as it
// does for stores of two processes, but is probably a mistake.
func (s *Store) claimName(limiter string) {
	b, ok := s.binding(limiter)
	if !ok {
		return
	}
	bindings.Lock()
	n := 0
	if !s.closed.Load() { // else release has been called, or waits
		bindings.stores[b]++
		n = bindings.stores[b]
		s.bindings = append(s.bindings, b)
	}
	bindings.Unlock()
	if n > 1 {
		s.config.Log.Warn("two stores of this process count for limiters of one name on the same server: their limiters share counters; use one store, or another name or namespace",
			"limiter", limiter, "namespace", s.config.Namespace, "server", b.server)
	}
}

// release gives up the namespace and the names of the store, which is closed.
func (s *Store) release() {
	if s.backend != nil {
		claims.Delete(claim{s.backend, s.config.Namespace})
	}
	bindings.Lock()
	defer bindings.Unlock()
	for _, b := range s.bindings {
		if bindings.stores[b]--; bindings.stores[b] == 0 {
			delete(bindings.stores, b)
		}
	}
	s.bindings = nil
}
