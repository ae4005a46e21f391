package httplimit_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
)

// What the caller does to the header of a response is not what the rule counts by.
func TestTheOutcomeHasTheHeaderOfTheResponseAsItCame(t *testing.T) {
	limiter := core.Must(core.New(core.Config{Name: "out", Rules: []core.Rule{{
		Name: "host", Key: httplimit.TargetHost, Limits: []core.Limit{core.PerHour(5)},
		Counts: func(_ core.Request, o core.Outcome) bool { return o.Header("X-Cost") == "1" },
	}}}))
	rt := httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) { return answer(200, "X-Cost", "1"), nil }))
	resp, err := rt.RoundTrip(request(t.Context(), t, "http://a.example/", http.NoBody))
	if err != nil {
		t.Fatal(err)
	}
	resp.Header.Set("X-Cost", "2")
	_ = resp.Body.Close()
	if d, err := limiter.Peek(t.Context(), 1, core.Hit{Rule: "host", Key: "a.example"}); err != nil || d.Remaining != 4 {
		t.Errorf("%v, %v: 4 are left", d, err)
	}
}

// followed is a context that counts who wants to know when it ends.
type followed struct {
	context.Context
	by atomic.Int64
}

// Value hides the context behind, which would be followed directly.
func (*followed) Value(any) any { return nil }

func (f *followed) AfterFunc(do func()) func() bool {
	f.by.Add(1)
	stop := context.AfterFunc(f.Context, do)
	return func() bool {
		f.by.Add(-1)
		return stop()
	}
}

// A worker sends many requests with one context, which keeps nothing of those that are done.
func TestAResponseThatIsClosedFollowsTheContextNoLonger(t *testing.T) {
	rt := httplimit.Transport(perTarget(0, core.InFlight(2)), trips(func(*http.Request) (*http.Response, error) { return answer(200), nil }))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	f := &followed{Context: ctx}
	for range 3 {
		resp, err := rt.RoundTrip(request(f, t, "http://a.example/", http.NoBody))
		if err != nil {
			t.Fatal(err)
		}
		if f.by.Load() == 0 {
			t.Error("a slot whose context ends is not given back")
		}
		_ = resp.Body.Close()
	}
	if n := f.by.Load(); n != 0 {
		t.Errorf("the context is followed by %d responses that are closed", n)
	}
}
