package redisstore_test

import (
	"os"
	"strconv"
)

// rounds returns how many rounds a randomised test makes: n, or FLOODGATE_ROUNDS times n.
func rounds(n int) int {
	if times, err := strconv.Atoi(os.Getenv("FLOODGATE_ROUNDS")); err == nil {
		return times * n
	}
	return n
}
