package core

// Traits returns what a SwapStore promises: it is as exact as compare-and-swap,
// and returns the Swapper's errors. It has no deadline but the Swapper's.
func (s *SwapStore) Traits() Traits { return Traits{Exact: true, WhenGone: Closes} }
