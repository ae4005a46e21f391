package swapstore

import (
	"github.com/floodgate-go/floodgate/core"
)

// Traits returns the promises of a Store: it is as exact as compare-and-swap,
// and returns the Swapper's errors. It has no deadline but the Swapper's.
func (s *Store) Traits() core.Traits { return core.Traits{Exact: true, NeverOpens: true, Closes: true} }
