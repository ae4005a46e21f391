package memcachedstore

import "github.com/floodgate-go/floodgate/core"

// Traits returns what the store promises. Several keys are swapped one by one.
func (s *Store) Traits() core.Traits { return core.TraitsOf(s.cached) }

// Traits is that of the store without the denial cache.
func (s *timely) Traits() core.Traits {
	t := s.swaps.Traits()
	t.KeepsDeadline = true
	return t
}
