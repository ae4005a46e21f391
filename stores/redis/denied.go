package redisstore

import (
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// countDeniedBit is set in the capacity of a limit that counts denied hits: see
// script/arguments.lua.
const countDeniedBit = 1 << 31

// capacityOf returns a limit's capacity as the script reads it.
func capacityOf(m *meter.Meter) uint32 {
	capacity := uint32(m.Capacity())
	if m.CountsDenied() {
		capacity |= countDeniedBit
	}
	return capacity
}

// countsDenied reports whether one of the items has a limit that counts denied hits.
func countsDenied(items []namedItem) bool {
	return slices.ContainsFunc(items, func(it namedItem) bool {
		return slices.ContainsFunc(it.rule.meters, func(m meter.Meter) bool { return m.CountsDenied() })
	})
}

// denyGroups ends a take of groups of which some but the first have been found to deny it. It
// decides on the first, and charges the limits of all groups that count denied
// hits and deny.
func (s *Store) denyGroups(op operation, groups [][]namedItem) error {
	some := false
	for i, g := range groups {
		counts := countsDenied(g)
		if i > 0 && (!counts || !denied(g)) {
			continue
		}
		verb := verbPeek
		if counts {
			verb = verbDenied
		}
		if _, err := s.ask(op, verb, g); err != nil {
			if some {
				err = afterOthers(err)
			}
			return err
		}
		some = some || counts
	}
	return nil
}

// denied reports whether a limit of one of the items denies it.
func denied(items []namedItem) bool {
	return slices.ContainsFunc(items, func(it namedItem) bool {
		return slices.ContainsFunc(it.Results, func(r core.Result) bool { return !r.Allowed })
	})
}
