package adaptertest

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// visitor is a client that decides for itself when it comes again.
type visitor struct {
	name string
	// pause returns how many seconds the client waits after a denial with this
	// Retry-After. After a response with status 200, it does not wait.
	pause func(retryAfter int) int
	// want are the statuses of its requests.
	want []int
}

// visit sends the requests of all visitors in the order of their times.
func visit(t *testing.T, c *client, clock *floodgatetest.Clock, visitors []visitor) {
	t.Helper()
	due, got, left := make([]time.Time, len(visitors)), make([][]int, len(visitors)), 0
	for i, v := range visitors {
		due[i], left = clock.Now(), left+len(v.want)
	}
	for ; left > 0; left-- {
		next := -1 // the visitor who comes next
		for i, v := range visitors {
			if len(got[i]) < len(v.want) && (next < 0 || due[i].Before(due[next])) {
				next = i
			}
		}
		v := &visitors[next]
		clock.Set(due[next])
		r := c.get("/", "Client", v.name)
		got[next] = append(got[next], r.status)
		if r.status == http.StatusTooManyRequests {
			due[next] = due[next].Add(time.Duration(v.pause(retryAfter(t, r)))*time.Second + time.Millisecond) // what Retry-After leaves out
		}
	}
	for i, v := range visitors {
		if !slices.Equal(got[i], v.want) {
			t.Errorf("the client that %s: %v, want %v", v.name, got[i], v.want)
		}
	}
}

// retryAfter returns the seconds of the header Retry-After.
func retryAfter(t *testing.T, r response) int {
	t.Helper()
	s, err := strconv.Atoi(r.header.Get("Retry-After"))
	if err != nil || s < 1 {
		t.Fatalf("status %d, Retry-After %q", r.status, r.header.Values("Retry-After"))
	}
	return s
}

// denials returns the statuses of two allowed requests and n denied ones.
func denials(n int) []int {
	return append([]int{200, 200}, slices.Repeat([]int{http.StatusTooManyRequests}, n)...)
}

// countDenied tests limits that count denied requests: a client that stops is let in later, one
// that comes too early never is, and one that heeds Retry-After always is.
func countDenied(t *testing.T, a Adapter) {
	serve := func(t *testing.T, clock *floodgatetest.Clock, algorithm core.Algorithm, counts bool) *client {
		return direct(t, a.Serve(t, limited(floodgatetest.NewLimiter(t, clock, core.Config{Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Header("Client"),
			Limits: []core.Limit{{Quota: 2, Window: time.Minute, Algorithm: algorithm, CountDenied: counts}},
		}}}))))
	}
	halfway := func(s int) int { return (s + 1) / 2 }
	for algorithm, heeds := range map[core.Algorithm][]int{
		core.SlidingWindow: {200, 200, 429, 200, 429, 200, 429, 200, 429},
		core.TokenBucket:   {200, 200, 429, 200, 429, 200, 429, 200, 429},
		core.SlidingLog:    {200, 200, 429, 200, 200, 429, 200, 200, 429}, // it keeps two hits at most
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			clock := floodgatetest.NewClock()
			visit(t, serve(t, clock, algorithm, true), clock, []visitor{
				{"stops", func(int) int { return 180 }, []int{200, 200, 429, 200, 200, 429, 200, 200, 429}},
				{"comes halfway", halfway, denials(30)},
				{"comes a second too early", func(s int) int { return s - 1 }, denials(30)},
				{"heeds Retry-After", func(s int) int { return s }, heeds},
			})

			// Without it, who comes too early is let in at last.
			clock = floodgatetest.NewClock()
			c, denied := serve(t, clock, algorithm, false), 0
			for range 3 {
				c.get("/", "Client", "k")
			}
			for r := c.get("/", "Client", "k"); r.status != http.StatusOK; r = c.get("/", "Client", "k") {
				if denied++; denied > 10 {
					t.Fatalf("status %d after 10 tries", r.status)
				}
				clock.Advance(time.Duration(halfway(retryAfter(t, r))) * time.Second)
			}
		})
	}
}
