package adaptertest

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// hands is a clock that is moved by hand.
type hands struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hands) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hands) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

var rateItem = regexp.MustCompile(`^"r";r=([0-9]+);t=([0-9]+)$`)

// rate returns r and t of a response's RateLimit field, which has one item.
func rate(t *testing.T, r response) (left, after int) {
	t.Helper()
	m := rateItem.FindStringSubmatch(r.header.Get("Ratelimit"))
	if m == nil {
		t.Fatalf("RateLimit: %q", r.header.Values("Ratelimit"))
	}
	left, _ = strconv.Atoi(m[1])
	after, _ = strconv.Atoi(m[2])
	return left, after
}

// fields tests that what the RateLimit fields promise comes true.
func fields(t *testing.T, a Adapter) {
	// The clock is away from the edges of all windows, by part of a second too.
	start := time.Unix(1_764_000_007, 250_000_000)
	for name, limit := range map[string]core.Limit{
		"sliding window":            {Quota: 4, Window: time.Minute},
		"sliding window, aligned":   {Quota: 4, Window: time.Minute, Aligned: true},
		"fixed window":              {Quota: 4, Window: time.Minute, Algorithm: core.FixedWindow},
		"fixed window, aligned":     {Quota: 4, Window: time.Minute, Algorithm: core.FixedWindow, Aligned: true},
		"fixed window with lockout": {Quota: 4, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 90 * time.Second}},
		"bucketed window":           {Quota: 4, Window: time.Minute, Algorithm: core.BucketedWindow, Precision: 10 * time.Second},
		"sliding log":               {Quota: 4, Window: time.Minute, Algorithm: core.SlidingLog},
		"token bucket":              {Quota: 4, Window: time.Minute, Algorithm: core.TokenBucket},
		"token bucket with burst":   {Quota: 7, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 3},
	} {
		t.Run("t is the time until more quota is there: "+name, func(t *testing.T) {
			clock := &hands{now: start}
			cost := hooktest.Funcs{CostFunc: func(r core.Request) (int64, error) {
				if len(r.HeaderValues("X-Peek")) > 0 {
					return 0, nil
				}
				return 1, nil
			}}
			l := limiter(t, core.Config{
				Hooks: cost,
				Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})),
				Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{limit}}},
			})
			c := direct(t, a.Serve(t, limited(l)))
			peek := func() (left, after int) { return rate(t, c.get("/", "X-Peek", "1")) }

			full, after := peek()
			if after != 0 {
				t.Errorf("t is %d while nothing has been taken", after)
			}
			// Hits at different times, so that they come back at different times.
			for range 2 {
				left, after := rate(t, c.get("/"))
				if left >= full || after < 1 {
					t.Errorf("r is %d of %d, t is %d", left, full, after)
				}
				clock.advance(2 * time.Second)
			}
			for left, after := peek(); left < full; left, after = peek() {
				clock.advance(time.Duration(after-1) * time.Second)
				if early, again := peek(); early != left || again != 1 {
					t.Fatalf("r was %d and t %d; a second early r is %d and t %d", left, after, early, again)
				}
				clock.advance(time.Second + time.Millisecond) // t leaves out what is below a millisecond
				if then, _ := peek(); then <= left {
					t.Fatalf("r was %d and t %d; after t r is %d", left, after, then)
				}
			}

			got := c.get("/")
			for got.status == http.StatusOK {
				got = c.get("/")
			}
			left, after := rate(t, got)
			if wait := got.header.Get("Retry-After"); left != 0 || wait != strconv.Itoa(after) {
				t.Errorf("denied: r is %d, t is %d, Retry-After is %q", left, after, wait)
			}
			clock.advance(time.Duration(after-1) * time.Second)
			if status := c.get("/").status; status != http.StatusTooManyRequests {
				t.Errorf("a second before t the status is %d", status)
			}
			clock.advance(time.Second + time.Millisecond)
			if status := c.get("/").status; status != http.StatusOK {
				t.Errorf("after t the status is %d", status)
			}
		})
	}

	t.Run("t of a denied request is its own wait", func(t *testing.T) {
		hooks := hooktest.Funcs{CostFunc: func(core.Request) (int64, error) { return 3, nil }}
		l := limiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{
			{Quota: 60, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 4},
		}}}})
		c := direct(t, a.Serve(t, limited(l)))
		if got := c.get("/"); got.header.Get("Ratelimit") != `"r";r=1;t=1` || got.header.Get("Ratelimit-Policy") != `"r";q=4;w=4` {
			t.Errorf("allowed: %v", headers(got))
		}
		// One more hit is there in a second, the three that are asked for in two.
		if got := c.get("/"); got.header.Get("Ratelimit") != `"r";r=1;t=2` || got.header.Get("Retry-After") != "2" {
			t.Errorf("denied: %v", headers(got))
		}
	})
}
