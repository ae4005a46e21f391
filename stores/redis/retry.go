package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The errors of a server that has not run the command. The same server may run
// it soon, or another server may.
var notNow = []string{"MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN ", "LOADING ", "READONLY ", "MASTERDOWN "}

// ranNot reports whether err is a reply which proves that the command did not
// run, and that it may be sent again.
func ranNot(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, prefix := range notNow {
		if strings.HasPrefix(reply.Error(), prefix) {
			return true
		}
	}
	return false
}

// mostRepeats is how often a command is sent again.
const mostRepeats = 4

// pauseBefore returns how long to wait before another attempt, which differs
// between callers.
func pauseBefore(attempt int) time.Duration {
	d := time.Duration(2<<attempt) * time.Millisecond
	return d/2 + rand.N(d)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
