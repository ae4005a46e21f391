package synced

import "github.com/floodgate-go/floodgate/core"

// Traits returns what the store promises, which depends on Config.Interval:
//
//   - Positive: not exact. Several processes may admit more together than a limit
//     says. While the backend does not answer, each process counts for itself.
//   - 0: exact. Take returns an error while the backend does not answer; it waits
//     for the backend, whose deadline is the only one.
//   - Negative: not exact, because each process counts for itself.
func (s *Store) Traits() core.Traits {
	if s.config.Interval == 0 {
		return core.Traits{Exact: true, WhenGone: core.Closes}
	}
	return core.Traits{WhenGone: core.Counts, KeepsDeadline: true, FailsFast: true, Private: s.config.Interval < 0, OneStep: true}
}
