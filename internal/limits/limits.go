// Package limits gives the stores of this module what package core keeps to
// itself of a limit: its arithmetic.
package limits

import (
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// Lease returns the index of the limit of core.Leases among a rule's limits, -1 if
// there is none.
func Lease(limits []core.Limit) int {
	return slices.IndexFunc(limits, func(l core.Limit) bool { return l.Algorithm == core.Leases })
}

// Of returns a limit as package meter counts it. The limit must be valid.
func Of(l core.Limit) meter.Limit { return meter.FromCore(l) }
