package meter

// Windows judges counts that a store keeps in its own way: one number for each window of an aligned
// FixedWindow or SlidingWindow. Its methods may be called concurrently.
type Windows struct{ m Meter }

// NewWindows returns the Windows of a limit. ok is false if the limit's windows are not aligned.
func NewWindows(l Limit) (w Windows, ok bool) {
	return Windows{New(l)}, l.Aligned
}

// With returns the Windows of the same limit with another quota.
func (w *Windows) With(quota int64) Windows { return Windows{w.m.With(quota)} }

// Start returns the beginning of the window that a time is in.
func (w *Windows) Start(now int64) int64 { return floorTo(now, w.m.Window) }

// Window returns the length of a window.
func (w *Windows) Window() int64 { return w.m.Window }

// Take fills in r for cost more hits at now, if current hits have been counted in now's window,
// which begins at start, and previous hits in the one before. Negative counts mean 0. If the limit
// admits the hits and this is not a peek, r is the result after them, and the caller counts them.
func (w *Windows) Take(r *Result, start, now, current, previous, cost int64, peek bool) {
	var words [cellWords]uint64
	cell{t: start, a: count32(current), b: count32(previous)}.store(words[:])
	w.m.Decide(r, words[:], now, cost)
	if r.Allowed && !peek {
		w.m.Charge(r, words[:], now, cost)
	}
	w.m.Report(r, words[:], now, cost)
}

// Charge fills in r as it is after cost more hits, which the caller counts even if the limit denies
// them. The other arguments are those of Take.
func (w *Windows) Charge(r *Result, start, now, current, previous, cost int64) {
	all := w.With(Unlimited)
	all.Take(r, start, now, current, previous, cost, false)
}

// Weight returns the part of the previous window that a window ending now still covers, from 0 to
// 1.
func (w *Windows) Weight(now int64) float64 {
	return float64(w.m.Window-(now-w.Start(now))) / float64(w.m.Window)
}

func count32(n int64) uint32 { return uint32(min(max(n, 0), MaxCount)) }
