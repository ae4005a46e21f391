package synced

import "github.com/floodgate-go/floodgate/core"

// ops are the operations that the store knows.
const ops = core.OpTake | core.OpPeek | core.OpCharge | core.OpRefund | core.OpReset

// Guarantees implements [core.Store]. The promises depend on Config.Interval:
//
//   - Positive: not exact. Several processes together may allow more than a
//     limit allows. If the backend does not answer, each process counts for
//     itself.
//   - 0: exact. A take returns an error if the backend does not answer. It waits
//     for the backend, whose deadline is the only one.
//   - Negative: not exact, because each process counts for itself.
func (s *Store) Guarantees() core.Guarantees {
	if s.config.Interval == 0 {
		return core.Guarantees{Ops: ops, Exact: true, Shared: true, OnFailure: core.FailClosed}
	}
	return core.Guarantees{Ops: ops, OneStep: true, Shared: s.config.Interval > 0, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailLocal}
}
