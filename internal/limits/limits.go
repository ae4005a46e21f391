// Package limits gives the stores of this module what package core keeps to
// itself of a limit: its arithmetic.
package limits

import (
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// Of returns a limit as package meter counts it. The limit must be valid.
func Of(l core.Limit) meter.Limit { return meter.FromCore(l) }
