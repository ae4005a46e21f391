package httplimit

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func testLimiter(t *testing.T, quota int64) *core.Limiter {
	t.Helper()
	key := func(dst []byte, _ core.Request) ([]byte, error) { return dst, nil }
	l, err := core.New(core.Config{Rules: []core.Rule{{Name: "all", Key: key, Limits: []core.Limit{core.PerHour(quota)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// remaining returns the hits that a limiter has left for its only key.
func remaining(t *testing.T, l *core.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), 1, core.Hit{Rule: "all"})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// serve passes a request to a handler and returns the request.
func serve(h http.Handler) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	return r
}

// A limiter that is mounted once does not copy the request. From the second place on, the
// copy of the request has the decision.
func TestOnlyALimiterInSeveralPlacesCopiesRequests(t *testing.T) {
	l := testLimiter(t, 10)
	limit := Middleware(l)
	var got *http.Request
	h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	if sent := serve(h); got != sent {
		t.Error("the limiter is mounted once, and the handler got a copy of the request")
	}
	if n := remaining(t, l); n != 9 {
		t.Errorf("%d of 10 remain after one request", n)
	}
	twice := Middleware(l)(h) // another Middleware of the same limiter
	if sent := serve(twice); got == sent {
		t.Error("the limiter is mounted twice, and the handler got the request itself")
	}
	if n := remaining(t, l); n != 8 {
		t.Errorf("%d of 10 remain after two requests, of which the second met the limiter twice", n)
	}
}

// Some frameworks apply a middleware for each request. Each time is another place.
func TestAMiddlewareThatIsAppliedForEachRequestCountsOnce(t *testing.T) {
	l := testLimiter(t, 100)
	outer, inner := Middleware(l), Middleware(l)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for range 20 {
		serve(outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner(h).ServeHTTP(w, r) })))
	}
	// Only the first request is counted twice: there was one place when it came.
	if n := remaining(t, l); n != 79 {
		t.Errorf("%d of 100 remain after 20 requests, want 79", n)
	}
	registry.Lock() // a cleanup of another test's middleware may run
	defer registry.Unlock()
	if n := registry.of[l].places.Load(); n != 2 {
		t.Errorf("%d places are counted, want no more than 2", n)
	}
}

// ExposeDecision of the limiter between does not hide the decision of the other limiter.
func TestALimiterBetweenTwoPlacesOfAnotherKeepsItsDecision(t *testing.T) {
	around, between := testLimiter(t, 10), testLimiter(t, 10)
	limit := Middleware(around)
	var last core.Decision
	h := limit(Middleware(between, ExposeDecision())(limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		last, _ = DecisionFrom(r.Context())
	}))))
	serve(h)
	if a, b := remaining(t, around), remaining(t, between); a != 9 || b != 9 {
		t.Errorf("%d and %d of 10 remain after one request", a, b)
	}
	if last.Remaining != 9 || !last.Allowed {
		t.Errorf("the handler read %v", last)
	}
}

// A program may make limiters for as long as it runs. The registry must not keep a limiter
// whose middlewares are not in use any more.
func TestTheRegistryRemovesALimiterWithoutMiddleware(t *testing.T) {
	l := testLimiter(t, 10)
	used, unused := Middleware(l), Middleware(l)
	h := unused(used(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	serve(h)
	waitFor := func(middlewares int) {
		t.Helper()
		registered := func() int {
			registry.Lock()
			defer registry.Unlock()
			if m := registry.of[l]; m != nil {
				return m.middlewares
			}
			return 0
		}
		for until := time.Now().Add(10 * time.Second); registered() != middlewares; runtime.Gosched() {
			if time.Now().After(until) {
				t.Fatalf("%d middlewares are registered, want %d", registered(), middlewares)
			}
			runtime.GC()
		}
	}
	waitFor(2)
	h, unused = used(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), nil
	waitFor(1)
	// The limiter has been in several places: it goes on marking requests.
	registry.Lock()
	m := registry.of[l]
	registry.Unlock()
	if !m.several() {
		t.Error("the places are forgotten while a middleware is in use")
	}
	serve(h)
	runtime.KeepAlive(used)
	used, h = nil, nil
	waitFor(0)
	registry.Lock()
	defer registry.Unlock()
	if _, kept := registry.of[l]; kept {
		t.Error("the registry has a limiter that no Middleware asks")
	}
	_, _, _ = used, unused, h
}
