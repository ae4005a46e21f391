package resilient

import "github.com/floodgate-go/floodgate/core"

// Traits returns the other store's promises, with two changes: there is a
// deadline, and a store that does not answer is not waited for. An error of the
// other store becomes a decision by Config.Meanwhile. If the other store opens
// by itself, so does this one, because it never learns of the failure.
func (s *Store) Traits() core.Traits {
	t, _ := core.TraitsOf(s.store) // New has checked the store
	t.KeepsDeadline, t.FailsFast = true, true
	switch s.config.Meanwhile {
	case ModeOpen:
		t.NeverOpens, t.Closes = false, false
	case ModeInProcess:
		t.Closes = false
	case ModeClosed:
	}
	return t
}
