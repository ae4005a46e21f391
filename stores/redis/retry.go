package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// exempt is a command that go-redis never repeats, whatever the client's
// MaxRetries and MaxRedirects are: if a reply is lost, the command may have run,
// and would be charged twice. A cluster client still follows MOVED and ASK.
type exempt struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (exempt) NoRetry() bool { return true }

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

const maxAttempts = 4

// pause waits before another attempt, for a time that differs between callers.
// It returns false if too little time is left for one.
func pause(ctx context.Context, attempt int) bool {
	d := time.Duration(2<<attempt) * time.Millisecond
	d = d/2 + rand.N(d)
	if end, _ := ctx.Deadline(); time.Until(end) <= d {
		return false // the error that is known now tells more than a timeout
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
