//go:build !linux

package core_test

import "time"

var started = time.Now()

// cpuTime returns the time on the wall, for want of a portable clock of the
// thread.
func cpuTime() time.Duration { return time.Since(started) }
