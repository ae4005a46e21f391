package resilient

import "github.com/floodgate-go/floodgate/core"

// Traits returns what the other store promises, with a deadline and without
// waiting for a store that does not answer. An error of the other store becomes
// what Config.Meanwhile says; if the other store opens by itself, so does this
// one, because it is never told.
func (s *Store) Traits() core.Traits {
	t := core.TraitsOf(s.store)
	t.KeepsDeadline, t.FailsFast = true, true
	switch {
	case s.config.Meanwhile == Open:
		t.WhenGone = core.Opens
	case s.config.Meanwhile == InProcess && t.WhenGone == core.Closes:
		t.WhenGone = core.Counts
	}
	return t
}
