package meter

// WorstCase returns the most hits that some window of the limit's length can
// hold.
func (m *Meter) WorstCase() int64 {
	switch m.algorithm {
	case SlidingWindow, FixedWindow, Calendar:
		return 2 * m.quota
	case TokenBucket:
		return m.capacity + m.quota
	case InFlight:
		return MaxCount
	case Lockout:
		return m.quota * (m.lockoutsWithin() + 1)
	default:
		return m.quota
	}
}

// Lifetime returns the longest time from a charge to the expiry of the state
// that the charge leaves.
func (m *Meter) Lifetime() int64 {
	switch m.algorithm {
	case SlidingWindow:
		return 2 * m.window
	case BucketedWindow:
		return m.window + m.precision
	case TokenBucket:
		if m.quota == 0 {
			return 0
		}
		return wideMul(m.window, m.capacity).divUp(m.quota) + 1
	case Lockout:
		return max(m.window, m.lockout.Longest+int64(m.lockout.levels)*m.lockout.Decay)
	case Calendar:
		return m.window + longestChange
	default:
		return m.window
	}
}

// MostBytes returns how large the state can become with the limit's own quota, if it grows;
// 0 if it does not.
func (m *Meter) MostBytes() int64 {
	words := int64(0)
	switch m.algorithm {
	case BucketedWindow:
		words = int64(m.bucketsWords())
	case SlidingLog:
		words = logHeader + m.quota
	case InFlight:
		words = leasesHeader + leaseWords*m.quota
	}
	return 8 * words
}
