// This file tests a limit with a clock that the test moves.
//
//	go test ./examples/testing

package shop_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestCommentsAreLimited(t *testing.T) {
	clock := floodgatetest.NewClock()
	limiter := floodgatetest.NewLimiter(t, clock, core.Config{Rules: []core.Rule{{
		Name: "user", Key: keyfuncs.Header("X-User"),
		Limits: []core.Limit{{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow}},
	}}})
	ann := floodgatetest.NewRequest("POST", "/comments", floodgatetest.Header("X-User", "ann"))
	bob := floodgatetest.NewRequest("POST", "/comments", floodgatetest.Header("X-User", "bob"))

	floodgatetest.WantAllowed(t, limiter.Check(ann))
	floodgatetest.WantRemaining(t, limiter.Check(ann), "user", 0)
	floodgatetest.WantDenied(t, limiter.Check(ann), time.Minute)
	floodgatetest.WantAllowed(t, limiter.Check(bob)) // another key, another counter
	clock.Advance(time.Minute)
	floodgatetest.WantAllowed(t, limiter.Check(ann))
}
