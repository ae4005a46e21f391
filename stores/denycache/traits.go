package denycache

import "github.com/floodgate-go/floodgate/core"

// Traits returns what the other store promises: the cache changes none of it.
func (s *Store) Traits() core.Traits {
	t, _ := core.TraitsOf(s.store) // New has checked the store
	return t
}
