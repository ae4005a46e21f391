//go:build !race

package echo5limit_test

const raceEnabled = false
