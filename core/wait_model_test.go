package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

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
	{Quota: 4, Window: time.Second, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Second, Max: 4 * time.Second}},
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
	l := hooktest.New(t, config)
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
			if wait := draw.IntN(2) == 0; wait {
				go func() {
					ctx, cancel := context.WithTimeout(ctx, maxWait)
					defer cancel()
					d, err := l.Wait(ctx, m.cost[i], core.Hit{Rule: "r", Key: m.key[i]})
					if (err == nil) != d.Allowed {
						t.Errorf("request %d: %v, %v", i, d, err)
					}
					m.end(i, d)
				}()
			} else {
				go func() { m.end(i, l.Check(r)) }()
			}
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
	if s := hooktest.Count(l); s.Waiting != 0 || len(m.ended) != len(m.came) {
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
	config := oneRule(limit)
	config.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	l := hooktest.New(t, config)
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
		case waited != d.Waited:
			t.Fatalf("request %d waited for %v, the decision says %v", i, waited, d.Waited)
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
