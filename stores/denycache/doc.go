// Package denycache remembers refusals: a key that a shared store has refused
// until some time is refused in the process until then, without asking the
// store again. A flood from a client that is over its limit costs the store one
// command each time that the limit lets something through again.
//
// It is a store around a store. redisstore has it built in and on; for others:
//
//	store, err := denycache.New(shared, denycache.Config{})
//
// # What stays exact
//
// While a key is refused nothing is charged to it, so that what was said of it
// stays true: RetryAfter and ResetAfter only grow shorter. A request is let
// through to the store when its wait is over, not later; and at once where it
// costs less than the one that was refused, for that may still fit.
//
// # What does not
//
//   - A Reset or Refund by another process, or through another Store value, is
//     noticed only when the wait is over, or after Config.Longest. A Reset and
//     a Refund through this one are noticed at once.
//   - Remaining is that of the refusal: it may be more by now, and still be too
//     little.
//   - For a request that costs more than the refused one, RetryAfter is the
//     least that it can be.
//   - Where one of several keys is known to be refused, nothing is known of the
//     others: their results are those of keys that nobody has used.
package denycache
