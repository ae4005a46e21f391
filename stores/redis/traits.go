package redisstore

import "github.com/floodgate-go/floodgate/core"

// Traits returns the promises of the store. OneStep is false for a client that
// spreads keys over several servers, and from the moment a server or proxy has
// rejected a command because its keys are in several hash slots.
func (s *Store) Traits() core.Traits { return direct{s}.Traits() }

func (d direct) Traits() core.Traits {
	return core.Traits{Exact: true, NeverOpens: true, Closes: true, KeepsDeadline: true, OneStep: d.s.layout.Load() == anyKeys}
}
