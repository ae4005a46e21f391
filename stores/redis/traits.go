package redisstore

import "github.com/floodgate-go/floodgate/core"

// Traits returns what the store promises. OneStep is false for a client that
// spreads keys over several servers, and from the moment at which a server or
// proxy has refused a command because its keys are in several hash slots.
func (s *Store) Traits() core.Traits { return direct{s}.Traits() }

func (d direct) Traits() core.Traits {
	return core.Traits{Exact: true, WhenGone: core.Closes, KeepsDeadline: true, OneStep: d.s.layout.Load() == anyKeys}
}
