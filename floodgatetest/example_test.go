package floodgatetest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// In a test, t is the test's own.
var t testing.TB = &recorder{}

func ExampleNewRequest() {
	key := keyfuncs.PostField("username")
	r := floodgatetest.NewRequest("POST", "/login", floodgatetest.Form("username", "alice"))
	text, err := key(nil, r)
	fmt.Printf("%s %v\n", text, err)
	// Output: alice <nil>
}

func ExampleNewClock() {
	clock := floodgatetest.NewClock()
	memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	limiter := core.Must(core.New(core.Config{Store: memory, Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	r := floodgatetest.NewRequest("GET", "/")
	fmt.Println(limiter.Check(r).Allowed, limiter.Check(r).Allowed)
	clock.Advance(2 * time.Minute)
	fmt.Println(limiter.Check(r).Allowed)
	// Output:
	// true false
	// true
}

// A rule of a comment form: two a minute for each user.
func ExampleWantDenied() {
	clock := floodgatetest.NewClock()
	limiter := floodgatetest.NewLimiter(&quiet{}, clock, core.Config{Rules: []core.Rule{{
		Name: "user", Key: keyfuncs.Header("X-User"),
		Limits: []core.Limit{{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow}},
	}}})
	r := floodgatetest.NewRequest("POST", "/comments", floodgatetest.Header("X-User", "ann"))
	floodgatetest.WantAllowed(t, limiter.Check(r))
	floodgatetest.WantAllowed(t, limiter.Check(r))
	floodgatetest.WantDenied(t, limiter.Check(r), time.Minute)
	fmt.Println(t.(*recorder).errors)
	// Output: []
}

// quiet is a test without an end.
type quiet struct{ testing.TB }

func (*quiet) Helper()        {}
func (*quiet) Cleanup(func()) {}
