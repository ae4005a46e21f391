package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// bucket is a token bucket that holds as many hits as come back in the window.
func bucket(quota int64, window time.Duration) []core.Limit {
	return []core.Limit{{Quota: quota, Window: window, Algorithm: core.TokenBucket}}
}

// A request whose turn has come for one key does not overtake an earlier one that waits for
// another of its keys, even if there are hits enough for the later one.
func TestAtItsTurnARequestLooksAtTheLinesOfItsOtherKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "both", Limits: bucket(2, 10*time.Second)},
			{Name: "late", Limits: bucket(1, 2*time.Second)},
			{Name: "early", Limits: bucket(2, time.Second)},
		}}, nil), newCrowd()
		use := func(cost int64, rule string) {
			t.Helper()
			if d, err := l.Take(t.Context(), cost, core.Hit{Rule: rule, Key: "k"}); err != nil || !d.Allowed {
				t.Fatalf("%v, %v", d, err)
			}
		}
		use(2, "early")
		use(1, "late")
		for i, rule := range []string{"early", "late"} {
			c.come(i, func() (core.Decision, error) {
				return l.Wait(t.Context(), int64(2-i), core.Hit{Rule: "both", Key: "k"}, core.Hit{Rule: rule, Key: "k"})
			})
		}
		time.Sleep(500 * time.Millisecond)
		use(1, "both") // the first request waits for the second hit until 5.5s
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.at(0) != 5500*time.Millisecond || c.at(1) != 10500*time.Millisecond {
			t.Errorf("the first request was allowed at %v, the second at %v; want 5.5s and 10.5s", c.at(0), c.at(1))
		}
	})
}

// A request that has to wait for another of its keys leaves the line of the first one to those
// behind it.
func TestARequestStandsInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "short", Limits: bucket(1, time.Second)},
			{Name: "long", Limits: bucket(1, time.Hour)},
		}}, nil), newCrowd()
		short, long := core.Hit{Rule: "short", Key: "k"}, core.Hit{Rule: "long", Key: "k"}
		if _, err := l.Take(t.Context(), 1, short); err != nil {
			t.Fatal(err)
		}
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 1, short, long) })
		c.come(1, func() (core.Decision, error) { return l.Wait(t.Context(), 1, short) })
		if _, err := l.Take(t.Context(), 1, long); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if c.at(0) != time.Hour || c.at(1) != time.Second {
			t.Errorf("the request of both keys was allowed at %v, that of one at %v; want 1h and 1s", c.at(0), c.at(1))
		}
	})
}

// A request asks again after a millisecond if the store denies it and names no wait.
func TestAStoreThatNamesNoWaitIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAsked()
		store.after = func(_ context.Context, b *core.Batch) {
			for i := range b.Items {
				for j := range b.Items[i].Results {
					if r := &b.Items[i].Results[j]; !r.Allowed {
						r.RetryAfter = 0
					}
				}
			}
		}
		config := patient(time.Minute, bucket(1, 10*time.Millisecond)...)
		config.Store = store
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if d, _ := c.of(1); !d.Allowed || d.at != 10*time.Millisecond || store.takes.Load() != 12 {
			t.Errorf("%v at %v after %d takes, want 12", d.Decision, d.at, store.takes.Load())
		}
	})
}

// The decision on a request whose client has gone says how long it would have waited.
func TestARequestThatGoesAwayIsToldTheRestOfItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(time.Minute, core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}), nil), newCrowd()
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{ctx: ctx}), nil })
		}
		time.Sleep(300 * time.Millisecond)
		cancel()
		synctest.Wait()
		if d, done := c.of(1); !done || d.Allowed || d.RetryAfter != 700*time.Millisecond || d.Waited() != 300*time.Millisecond {
			t.Errorf("%t, %v, retry after %v", done, d.Decision, d.RetryAfter)
		}
	})
}

// What a request in line may cost at most depends on the quota that it brings.
func TestARequestInLineHasTheQuotaThatItBrings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(0, core.Limit{Quota: 2, Window: time.Second, Algorithm: core.FixedWindow}), nil), newCrowd()
		k := core.Hit{Rule: "r", Key: "k"}
		rich := core.Hit{Rule: "r", Key: "k", Quotas: []int64{10}}
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 2, k) })
		c.come(1, func() (core.Decision, error) { return l.Wait(t.Context(), 1, k) })
		c.come(2, func() (core.Decision, error) { return l.Wait(t.Context(), 5, rich) })
		time.Sleep(time.Minute)
		synctest.Wait()
		c.inOrder(t, 3)
		if c.at(2) != time.Second {
			t.Errorf("allowed at %v, want 1s", c.at(2))
		}
	})
}

// givesBack are the ways in which a key gets hits back before its window ends.
var givesBack = map[string]func(context.Context, *core.Limiter, core.Decision) error{
	"Reset":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Reset(ctx, waitedFor) },
	"ResetAll": func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.ResetAll(ctx) },
	"Block":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Block(ctx, 0, waitedFor) },
	"Adjust":   func(ctx context.Context, l *core.Limiter, d core.Decision) error { return l.Adjust(ctx, d, 0) },
	"Adjust after Settle": func(ctx context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusOK})
		return l.Adjust(ctx, d, 0)
	},
	"Counts": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusNotFound})
		return nil
	},
	"Clears": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusNoContent})
		return nil
	},
	"SetCost": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		d.SetCost(0)
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusOK})
		return nil
	},
}

var waitedFor = core.Hit{Rule: "r", Key: "k"}

// event is something that a waitModel has seen of one request.
type event struct {
	request int
	at      time.Duration
}

// waitModel makes requests of several keys, which cost different numbers of hits, and notes
// when each is allowed and when each leaves.
type waitModel struct {
	mu       sync.Mutex
	begun    time.Time
	key      []string
	cost     []int64
	quota    []int64 // of the configuration with which a request began
	came     []time.Duration
	ended    map[int]event
	allowed  []event
	decided  map[int]core.Decision
	canceled map[int]bool
	quotaNow int64
}

func (m *waitModel) now() time.Duration { return time.Since(m.begun) }

func (m *waitModel) end(i int, d core.Decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended[i], m.decided[i] = event{i, m.now()}, d
}

// whoAsks is the key under which the context of a request has its number.
type whoAsks struct{}

// take is called after each take, before the head leaves its line.
func (m *waitModel) take(ctx context.Context, b *core.Batch) {
	if b.Allowed && b.Op == core.OpTake {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.allowed = append(m.allowed, event{ctx.Value(whoAsks{}).(int), m.now()})
	}
}

var modelLimits = []core.Limit{
	{Quota: 4, Window: time.Second, Algorithm: core.FixedWindow},
	{Quota: 4, Window: time.Second},
	{Quota: 4, Window: time.Second, Algorithm: core.SlidingLog},
	{Quota: 4, Window: time.Second, Algorithm: core.BucketedWindow, Precision: 250 * time.Millisecond},
	{Quota: 4, Window: time.Second, Algorithm: core.TokenBucket},
}

// Requests that arrive, cost, go away and are reconfigured at random: each key allows them in
// the order in which they came, each at the earliest instant at which it is its turn and the
// limit allows it, and nothing is charged for the others.
func TestWaitingFollowsAModel(t *testing.T) {
	first := rand.Uint64()
	for seed := first; seed < first+200; seed++ {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
			limit := modelLimits[draw.IntN(len(modelLimits))]
			maxWait := time.Duration(100+draw.IntN(4900)) * time.Millisecond
			keys := []string{"a", "b", "c"}[:1+draw.IntN(3)]
			synctest.Test(t, func(t *testing.T) { runModel(t, draw, limit, maxWait, keys, 5+draw.IntN(55)) })
		})
		if !ok {
			return
		}
	}
}

func runModel(t *testing.T, draw *rand.Rand, limit core.Limit, maxWait time.Duration, keys []string, steps int) {
	t.Helper()
	m := &waitModel{begun: time.Now(), ended: map[int]event{}, decided: map[int]core.Decision{}, canceled: map[int]bool{}, quotaNow: limit.Quota}
	config := core.Config{MaxWait: maxWait, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}, Key: func(dst []byte, r core.Request) ([]byte, error) {
		return append(dst, r.Method()...), nil
	}}}, Hooks: hooktest.Funcs{CostFunc: func(r core.Request) (int64, error) {
		var cost int64
		_, err := fmt.Sscan(r.HeaderValues("cost")[0], &cost)
		return cost, err
	}}}
	s := newAsked()
	s.after = m.take
	config.Store = s
	l, err := core.New(config)
	if err != nil {
		t.Fatal(err)
	}
	cancels := map[int]context.CancelFunc{}
	for range steps {
		switch draw.IntN(10) {
		case 0:
			time.Sleep(time.Duration(1+draw.IntN(700_000)) * time.Microsecond)
		case 1:
			if i := draw.IntN(61); cancels[i] != nil {
				m.mu.Lock()
				_, done := m.ended[i]
				m.canceled[i] = m.canceled[i] || !done
				m.mu.Unlock()
				cancels[i]()
			}
		case 2:
			if draw.IntN(4) == 0 {
				config.Rules[0].Limits = []core.Limit{limit}
				m.quotaNow = 1 + draw.Int64N(8)
				config.Rules[0].Limits[0].Quota = m.quotaNow
				if err := l.Reconfigure(config); err != nil {
					t.Fatal(err)
				}
			}
		default:
			i := len(m.came)
			m.came = append(m.came, m.now())
			m.key = append(m.key, keys[draw.IntN(len(keys))])
			m.cost = append(m.cost, []int64{1, 1, 1, 1, 2, 3, 5}[draw.IntN(7)])
			m.quota = append(m.quota, m.quotaNow)
			ctx, cancel := context.WithCancel(context.WithValue(context.Background(), whoAsks{}, i))
			cancels[i] = cancel
			r := &request{ctx: ctx, method: m.key[i], header: map[string][]string{"cost": {fmt.Sprint(m.cost[i])}}}
			go func() { m.end(i, l.Check(r)) }()
			synctest.Wait()
		}
		synctest.Wait()
		time.Sleep(time.Microsecond) // nothing else happens at the same instant
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	for _, cancel := range cancels {
		cancel()
	}
	if s := l.Stats(); s.Waiting != 0 || len(m.ended) != len(m.came) {
		t.Fatalf("%d of %d have ended, %+v", len(m.ended), len(m.came), s)
	}
	for _, key := range keys {
		m.check(t, limit, maxWait, key)
	}
}

// check replays what was allowed of one key.
func (m *waitModel) check(t *testing.T, limit core.Limit, maxWait time.Duration, key string) {
	t.Helper()
	clock := &clock{now: m.begun}
	config := core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}}}}
	config.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	l, err := core.New(config)
	if err != nil {
		t.Fatal(err)
	}
	with := func(i int) { // the configuration of a request
		config.Rules[0].Limits = []core.Limit{limit}
		config.Rules[0].Limits[0].Quota = m.quota[i]
		if err := l.Reconfigure(config); err != nil {
			t.Fatal(err)
		}
	}
	last, before := -1, time.Duration(-1)
	for _, e := range m.allowed {
		i := e.request
		if m.key[i] != key {
			continue
		}
		if i < last {
			t.Fatalf("request %d was allowed after request %d, which came later", i, last)
		}
		last = i
		// It could not have been allowed before it came, nor before those in front of it had left.
		turn := m.came[i]
		for j := range i {
			if m.key[j] == key {
				turn = max(turn, m.ended[j].at)
			}
		}
		with(i)
		clock.now = m.begun.Add(max(turn, before))
		d, err := l.Peek(context.Background(), m.cost[i], core.Hit{Rule: "r"})
		if err != nil {
			t.Fatal(err)
		}
		// A token bucket pays its debt off at the quota of the last charge: a charge with another
		// quota may have made the wait shorter than the request has been told.
		late := limit.Algorithm == core.TokenBucket && slices.ContainsFunc(m.allowed, func(f event) bool {
			return m.key[f.request] == key && m.quota[f.request] != m.quota[i] && f.at >= m.came[i] && f.at <= e.at
		})
		if want := max(turn, before) + d.RetryAfter; e.at != want && !(late && e.at > want) {
			t.Fatalf("request %d (cost %d) was allowed at %v, its turn was at %v, and the limit allows it at %v", i, m.cost[i], e.at, turn, want)
		}
		clock.now, before = m.begun.Add(e.at), e.at
		if d, err := l.Take(context.Background(), m.cost[i], core.Hit{Rule: "r"}); err != nil || !d.Allowed {
			t.Fatalf("request %d was allowed at %v: %v, %v", i, e.at, d, err)
		}
	}
	for i, d := range m.decided {
		waited := m.ended[i].at - m.came[i]
		switch {
		case m.key[i] != key:
		case waited > maxWait:
			t.Fatalf("request %d waited for %v, at most %v", i, waited, maxWait)
		case waited != d.Waited():
			t.Fatalf("request %d waited for %v, the decision says %v", i, waited, d.Waited())
		case m.canceled[i] && d.Allowed:
			t.Fatalf("request %d went away and was charged", i)
		case !d.Allowed && m.cost[i] > m.quota[i] && waited > 0:
			t.Fatalf("request %d costs more than the quota, and waited for %v", i, waited)
		case !d.Allowed && !m.canceled[i] && waited < maxWait && d.RetryAfter <= maxWait-waited:
			t.Fatalf("request %d was denied after %v, although it may wait for %v and needs %v more", i, waited, maxWait, d.RetryAfter)
		}
	}
	if slices.ContainsFunc(m.allowed, func(e event) bool { return m.canceled[e.request] }) {
		t.Fatal("allowed after it went away")
	}
}
