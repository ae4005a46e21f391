package floodgatetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// In a test, t is the argument of the test.
var t testing.TB = &recorder{}

func ExampleNewRequest() {
	key := keyfuncs.PostField("username")
	r := floodgatetest.NewRequest("POST", "/login", floodgatetest.Form("username", "alice"))
	text, err := key(nil, r)
	fmt.Printf("%s %v\n", text, err)
	// Output: alice <nil>
}

// A request with data of the client, the framework and another middleware.
func ExampleNewRequest_options() {
	type userKey struct{}
	r := floodgatetest.NewRequest("POST", "https://api.example.com/items/7?lang=de",
		floodgatetest.From("203.0.113.7:5000"),
		floodgatetest.Route("POST /items/{id}"),
		floodgatetest.PathValue("id", "7"),
		floodgatetest.Cookie("session", "s1"),
		floodgatetest.Value(userKey{}, "ann"),
		floodgatetest.Context(context.Background()),
		floodgatetest.JSON(`{"name": "chair"}`)) // Body("application/json", …) is the same
	for _, key := range []core.KeyFunc{
		keyfuncs.ClientIP(), keyfuncs.Route(), keyfuncs.PathValue("id"), keyfuncs.Query("lang"), keyfuncs.Cookie("session"), keyfuncs.UserValue(userKey{}), keyfuncs.PostField("name"),
	} {
		text, err := key(nil, r)
		fmt.Printf("%q %v\n", text, err)
	}
	xml := floodgatetest.NewRequest("POST", "/", floodgatetest.Body("text/xml", "<name>chair</name>"))
	body, err := xml.Body(100)
	fmt.Printf("%q %v\n", body, err)
	// Output:
	// "203.0.113.7" <nil>
	// "POST /items/{id}" <nil>
	// "7" <nil>
	// "de" <nil>
	// "s1" <nil>
	// "ann" <nil>
	// "chair" <nil>
	// "<name>chair</name>" <nil>
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
	floodgatetest.WantRemaining(t, limiter.Check(r), "user", 0)
	floodgatetest.WantDenied(t, limiter.Check(r), time.Minute)
	fmt.Println(t.(*recorder).errors)
	// Output: []
}

// quiet is a testing.TB whose Cleanup does nothing.
type quiet struct{ testing.TB }

func (*quiet) Helper()        {}
func (*quiet) Cleanup(func()) {}
