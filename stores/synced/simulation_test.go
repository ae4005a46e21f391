package synced_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// The simulation runs processes on one backend beside a plain model: the true number of hits of
// each key and window.
const (
	simQuota    = 40
	simWindow   = 20 * time.Second
	simInterval = 200 * time.Millisecond
)

type simStep struct {
	do           string
	node, n, key int
}

var simSteps = rapid.Custom(func(t *rapid.T) simStep {
	return simStep{
		do: rapid.SampledFrom([]string{
			"take", "take", "take", "take", "peek", "refund", "wait", "wait", "wait a window", "down", "up", "lose an answer", "start a process", "end a process",
		}).Draw(t, "do"),
		node: rapid.IntRange(0, 9).Draw(t, "node"), n: rapid.IntRange(1, 12).Draw(t, "n"),
		key: rapid.IntRange(0, 2).Draw(t, "key"),
	}
})

type simKey struct {
	key    int
	window int64
}

type simNode struct {
	store   *synced.Store
	limiter *core.Limiter
	own     map[simKey]int64 // allowed less given back
	last    []core.Decision
}

type simulation struct {
	t     *testing.T
	b     *shared
	nodes []*simNode
	truth map[simKey]int64
	fail  string
}

func (s *simulation) failf(format string, args ...any) {
	if s.fail == "" {
		s.fail = fmt.Sprintf(format, args...)
	}
}

func (s *simulation) start() {
	stores, limiters := newNodes(s.t, s.b, 1, synced.Config{Namespace: "ns", Interval: simInterval, Timeout: 100 * time.Millisecond},
		core.Limit{Quota: simQuota, Window: simWindow, Algorithm: core.FixedWindow, Aligned: true})
	s.nodes = append(s.nodes, &simNode{stores[0], limiters[0], map[simKey]int64{}, nil})
}

func simHit(key int) core.Hit { return core.Hit{Rule: "r", Key: fmt.Sprint("key", key)} }

func (s *simulation) at(key int) simKey {
	return simKey{key, time.Now().UnixMicro() / simWindow.Microseconds()}
}

func (s *simulation) step(st simStep) {
	n := s.nodes[st.node%len(s.nodes)]
	at := s.at(st.key)
	switch st.do {
	case "take":
		d, err := n.limiter.Take(context.Background(), int64(st.n), simHit(st.key))
		if err != nil {
			s.failf("take: %v", err)
		} else if d.Allowed {
			n.own[at] += int64(st.n)
			s.truth[at] += int64(st.n)
			n.last = append(n.last, d)
			if n.own[at] > simQuota {
				s.failf("one process allows %d of %d", n.own[at], simQuota)
			}
		}
	case "peek":
		if got := left(s.t, n.limiter, fmt.Sprint("key", st.key)); got > simQuota-n.own[at] {
			s.failf("%d left in a process that has counted %d of %d", got, n.own[at], simQuota)
		}
	case "refund": // right after the take, so that it is of this window
		d, err := n.limiter.Take(context.Background(), int64(st.n), simHit(st.key))
		if err != nil || d.Allowed && n.limiter.Adjust(context.Background(), d, 0) != nil {
			s.failf("refund: %v", err)
		}
	case "wait":
		time.Sleep(time.Duration(st.n) * 100 * time.Millisecond)
	case "wait a window":
		time.Sleep(simWindow)
	case "down":
		s.b.set(func(b *shared) { b.down = true })
	case "up":
		s.b.set(func(b *shared) { b.down = false })
	case "lose an answer":
		s.b.set(func(b *shared) { b.lose = 1 })
	case "start a process":
		if len(s.nodes) < 4 {
			s.start()
		}
	case "end a process":
		if len(s.nodes) > 1 {
			s.b.set(func(b *shared) { b.down = false })
			if err := n.store.Close(context.Background()); err != nil {
				s.failf("close: %v", err)
			}
			i := st.node % len(s.nodes)
			s.nodes = append(s.nodes[:i], s.nodes[i+1:]...)
		}
	}
}

// settle lets all processes exchange, and asks for all keys meanwhile.
func (s *simulation) settle(rounds int) {
	s.b.set(func(b *shared) { b.down, b.lose = false, 0 })
	for range rounds {
		for _, n := range s.nodes {
			for key := range 3 {
				left(s.t, n.limiter, fmt.Sprint("key", key))
			}
		}
		time.Sleep(simInterval)
	}
}

// stored returns what the backend has of a key's current window.
func (s *simulation) stored(at simKey) (n int64) {
	s.b.set(func(b *shared) {
		name := fmt.Sprint("ns/", core.StoreRule{Name: "r"}.StoredKey("api", append([]byte(fmt.Sprint("key", at.key)), 0)), ":f")
		n = b.counts[synced.Counter{Key: name, Window: simWindow, Start: time.UnixMicro(at.window * simWindow.Microseconds())}]
	})
	return n
}

// agree checks that backend and processes have what is true.
func (s *simulation) agree() {
	for key := range 3 {
		at := s.at(key)
		want, got := s.truth[at], s.stored(at)
		if got != want {
			s.failf("the backend has %d hits of %v, there were %d", got, at, want)
		}
		for i, n := range s.nodes {
			if used := simQuota - left(s.t, n.limiter, fmt.Sprint("key", key)); used != min(simQuota, want) {
				s.failf("process %d knows of %d hits of %v, there were %d", i, used, at, want)
			}
		}
	}
}

func (s *simulation) end() {
	for _, n := range s.nodes {
		_ = n.store.Close(context.Background())
	}
}

func simulate(t *testing.T, run func(s *simulation)) (fail string) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(simWindow).Add(simWindow)))
		s := &simulation{t: t, b: newShared(), truth: map[simKey]int64{}}
		defer s.end()
		s.start()
		run(s)
		fail = s.fail
	})
	return fail
}

// Whatever happens to exchanges and processes, no process allows more than the
// quota by its own count, and after two Intervals without a failure all agree
// with what is true; so does a process that starts then.
func TestSimulation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(simSteps, 1, 60).Draw(rt, "steps")
		fail := simulate(t, func(s *simulation) {
			for _, st := range steps {
				s.step(st)
			}
			// Far enough from the window's end to settle within it.
			if rest := time.Until(time.Now().Truncate(simWindow).Add(simWindow)); rest < 5*time.Second {
				time.Sleep(rest)
			}
			s.settle(3)
			s.agree()
			s.start()
			s.agree()
		})
		if fail != "" {
			rt.Fatal(fail)
		}
	})
}

// The overshoot of processes that all try as often as they can is bounded.
func TestOvershoot(t *testing.T) {
	const nodes, quota, window, every = 4, 1000, 10 * time.Second, time.Millisecond
	for _, row := range []struct {
		interval, latency time.Duration
		loss              int // every so many answers one is lost
	}{
		{10 * time.Millisecond, 0, 0}, {100 * time.Millisecond, 0, 0}, {time.Second, 0, 0}, {100 * time.Millisecond, 20 * time.Millisecond, 3}, {0, 0, 0},
	} {
		t.Run(fmt.Sprint(row.interval, row.latency, row.loss), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Now().Truncate(window).Add(window)))
				b := newShared()
				b.latency = row.latency
				_, limiters := newNodes(t, b, nodes, synced.Config{Interval: row.interval}, aligned(quota, window))
				start := time.Now()
				const windows = 6
				var allowed [windows]int
				for tick := 0; time.Since(start) < windows*window; tick++ {
					if row.loss > 0 && tick%(row.loss*100) == 0 {
						b.set(func(b *shared) { b.lose = 1 })
					}
					for _, l := range limiters {
						if take(t, l, "k") {
							allowed[time.Since(start)/window]++
						}
					}
					time.Sleep(every)
				}
				late := row.interval + row.latency
				if row.loss > 0 {
					late += row.interval + row.latency // what was lost is heard of one exchange later
				}
				bound := min(nodes*quota, quota+(nodes-1)*int((late+every)/every)+nodes)
				sum := 0
				for i, n := range allowed {
					if n > bound {
						t.Errorf("window %d allows %d, the bound is %d", i, n, bound)
					}
					if i > 0 {
						sum += n
					}
				}
				if allowed[0] < quota {
					t.Errorf("the first window allows %d of %d", allowed[0], quota)
				}
				t.Logf("interval %v: first window %d, later ones %d on average, bound %d", row.interval, allowed[0], sum/(windows-1), bound)
			})
		})
	}
}
