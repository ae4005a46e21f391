package synced

import "github.com/floodgate-go/floodgate/core"

// Traits returns the promises of the store, which depend on Config.Interval:
//
//   - Positive: not exact. Several processes together may admit more than a
//     limit allows. If the backend does not answer, each process counts for
//     itself.
//   - 0: exact. Take returns an error if the backend does not answer. It waits
//     for the backend, whose deadline is the only one.
//   - Negative: not exact, because each process counts for itself.
func (s *Store) Traits() core.Traits {
	if s.config.Interval == 0 {
		return core.Traits{Exact: true, NeverOpens: true, Closes: true}
	}
	return core.Traits{NeverOpens: true, KeepsDeadline: true, FailsFast: true, Private: s.config.Interval < 0, OneStep: true}
}
