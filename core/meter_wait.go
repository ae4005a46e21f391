package core

// wait returns how long it takes, without further hits, until cost is
// admitted: 0 now, never where it does not fit.
func (m *meter) wait(w []uint64, now, cost int64) int64 {
	switch {
	case cost <= 0:
		return 0
	case cost > m.capacity || m.quota == 0:
		return never
	}
	switch m.algorithm {
	case FixedWindow:
		return loadCell(w).waitFixed(m, now, cost)
	case TokenBucket:
		return loadCell(w).waitBucket(m, now, cost)
	case BucketedWindow:
		return m.waitBuckets(w, now, cost)
	case SlidingLog:
		return m.waitLog(w, now, cost)
	case lockoutWindow:
		return loadLockout(w).wait(m, now, cost)
	default:
		return loadCell(w).waitSliding(m, now, cost)
	}
}
