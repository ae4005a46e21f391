//go:build race

package racetest

// Enabled says whether the race detector runs. It makes pools drop values at
// random, so that allocations appear that are not there without it.
const Enabled = true
