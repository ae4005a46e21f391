package core

import (
	"fmt"
	"reflect"
	"slices"
)

// Reconfigure replaces the limiter's rules, limits, hooks, headers, observer and
// dry run, for all later requests. Requests under way are decided and settled by
// the configuration with which they began. Counters whose rule name, algorithm, window, precision and alignment
// stay keep their count, whatever their quota becomes. The name and the store
// cannot change: leave them empty, or as they are. After an error nothing has
// changed.
func (l *Limiter) Reconfigure(c Config) error {
	l.reconfigure.Lock()
	defer l.reconfigure.Unlock()
	s, err := l.next(c)
	if err != nil {
		return err
	}
	l.current.Store(s)
	return nil
}

// next makes a configuration of the limiter's counters.
func (l *Limiter) next(c Config) (*snapshot, error) {
	old := l.current.Load()
	if c.Name == "" {
		c.Name = old.name
	}
	if c.Name != old.name {
		return nil, fmt.Errorf("%w: Name: %q: cannot change from %q", ErrConfig, c.Name, old.name)
	}
	if c.Store != nil && !same(c.Store, l.store) {
		return nil, fmt.Errorf("%w: Store: %T: cannot change", ErrConfig, c.Store)
	}
	s, err := c.compile()
	if err != nil {
		return nil, err
	}
	bound, err := old.bound.Rebind(s.storeRules(l.store))
	if err != nil {
		return nil, err
	}
	s.limiter = l
	l.generate(s, old)
	if err := s.bindTo(l.store, bound); err != nil {
		return nil, err
	}
	// Last, so that no observer hears of rules that do not come into force.
	if err := s.observedBy(c.Observer, &l.counts.panicked); err != nil {
		return nil, err
	}
	s.bindObserver()
	return s, nil
}

// generate gives the rules whose limits have changed a generation of their own.
func (l *Limiter) generate(s, old *snapshot) {
	l.generations++
	for i := range s.rules {
		r := &s.rules[i]
		r.generation = l.generations
		if before := old.find(r.Name); before >= 0 && slices.Equal(old.rules[before].Limits, r.Limits) {
			r.generation = old.rules[before].generation
		}
	}
}

// same returns whether a and b are one store. Non-comparable stores are never
// equal.
func same(a, b Store) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
