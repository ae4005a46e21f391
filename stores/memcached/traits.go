package memcachedstore

import "github.com/floodgate-go/floodgate/core"

// Traits returns the promises of the store. Several keys are swapped one by
// one.
func (s *Store) Traits() core.Traits {
	t, _ := core.TraitsOf(s.cached) // New has checked the store
	return t
}

// Traits returns the promises of the store without the denial cache.
func (s *timely) Traits() core.Traits {
	t := s.swaps.Traits()
	t.KeepsDeadline = true
	return t
}
