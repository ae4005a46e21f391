//go:build !race

// Package racetest tells tests that count allocations whether the race detector runs.
package racetest

// Enabled says whether the race detector runs.
const Enabled = false
