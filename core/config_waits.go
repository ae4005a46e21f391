package core

import (
	"errors"
	"fmt"
	"time"
)

// The defaults of Config.MaxWaiters and MaxWaitersTotal, and the most that they can be.
const (
	defaultMaxWaiters      = 100
	defaultMaxWaitersTotal = 10_000
	mostWaiters            = 1_000_000
)

// checkWaits reports what is wrong with the waits of a limiter, and notes in s how many
// requests may wait.
func (c *Config) checkWaits(s *snapshot) error {
	errs := []error{checkMaxWait(c.MaxWait)}
	for _, n := range []struct {
		field     string
		value     int
		otherwise int
		to        *int
	}{
		{"MaxWaiters", c.MaxWaiters, defaultMaxWaiters, &s.maxWaiters},
		{"MaxWaitersTotal", c.MaxWaitersTotal, defaultMaxWaitersTotal, &s.maxWaitersTotal},
	} {
		if *n.to = n.value; n.value == 0 {
			*n.to = n.otherwise
		}
		if n.value < 0 || n.value > mostWaiters {
			errs = append(errs, &fieldError{n.field, fmt.Sprintf("%d: must be from 1 to %d, or 0 for %d", n.value, mostWaiters, n.otherwise)})
		}
	}
	return errors.Join(errs...)
}

func checkMaxWait(d time.Duration) error {
	if d < 0 || d > MaxWindow {
		return &fieldError{"MaxWait", fmt.Sprintf("%v: must be from 0 to 366 days", d)}
	}
	if 0 < d && d < MinWindow {
		return &fieldError{"MaxWait", fmt.Sprintf("%v: must be 0, or from %v to 366 days: a number without a unit counts nanoseconds, so write 2*time.Second for 2 seconds", d, MinWindow)}
	}
	return nil
}
