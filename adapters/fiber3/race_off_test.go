//go:build !race

package fiber3limit_test

const raceEnabled = false
