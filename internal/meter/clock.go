package meter

import "time"

// Clock returns a clock of microseconds since the Unix epoch. If clock is nil,
// it is the process's monotonic clock, which does not follow changes of the wall
// clock.
func Clock(clock func() time.Time) func() int64 {
	if clock != nil {
		return func() int64 { return clock().UnixMicro() }
	}
	start := time.Now()
	epoch := start.UnixMicro()
	return func() int64 { return epoch + int64(time.Since(start)/time.Microsecond) }
}
