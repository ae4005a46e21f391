package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// gauges is an Observer that adds up what is held and who waits, by rule.
type gauges struct {
	mu           sync.Mutex
	held, queued map[string]int64
	took         []time.Duration
	waited       []time.Duration
}

func newGauges() *gauges {
	return &gauges{held: map[string]int64{}, queued: map[string]int64{}}
}

func (g *gauges) Observe(_ string, rules []core.Rule) core.ObserverFuncs {
	return core.ObserverFuncs{
		Held: func(_ context.Context, rule int, slots int64, took time.Duration) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.held[rules[rule].Name] += slots; slots < 0 {
				g.took = append(g.took, took)
			} else if took != 0 || slots == 0 {
				panic("slots have been held before they were given")
			}
		},
		Queued: func(_ context.Context, rule int, change int64) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.queued[rules[rule].Name] += change
		},
		Decided: func(_ context.Context, o core.Observation) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.waited = append(g.waited, o.Waited)
		},
	}
}

// sum returns what is held and who waits.
func (g *gauges) sum(rule string) (held, queued int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held[rule], g.queued[rule]
}

// However requests end, what the observer has seen held is what the store counts, and who it
// has seen waiting is who waits.
func TestObserverSeesWhatIsHeldAndWhoWaits(t *testing.T) {
	for i := range 30 {
		seed := uint64(time.Now().UnixNano()) + uint64(i)
		synctest.Test(t, func(t *testing.T) { gaugesModel(t, seed, i%2 == 1) })
	}
}

const modelKeys = 3

// gaugesModel lets requests come, wait, hold, panic and end in all ways. faulty: the store is
// not the Memory itself, and may panic.
func gaugesModel(t *testing.T, seed uint64, faulty bool) {
	random := rand.New(rand.NewPCG(seed, 24)) //nolint:gosec // a test's
	g, s := newGauges(), newAsked()
	var faults sync.Map // by context
	s.before = func(b *core.Batch) {
		if _, fails := faults.Load(string(b.Items[0].Key[:2])); fails && b.Op == core.OpTake {
			panic("the store")
		}
	}
	header := func(name string) core.KeyFunc {
		return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.HeaderValues(name)[0]...), nil }
	}
	hooks := core.HookFuncs{
		CostFunc: func(r core.Request) (int64, error) { return strconv.ParseInt(r.HeaderValues("Cost")[0], 10, 64) },
		OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
			if r.HeaderValues("Hook")[0] == "panics" {
				panic("the hook")
			}
			return core.DefaultHooks{}.OnDisallowed(r, d)
		},
	}
	config := core.Config{Store: s, Observer: g, Hooks: hooks, Log: new(lines).logger(), MaxWait: 3 * time.Second, MaxWaiters: 4, Rules: []core.Rule{
		{Name: "flight", Key: header("Key"), Limits: []core.Limit{core.InFlight(4)}},
		{Name: "rate", Key: header("Key"), Limits: []core.Limit{{Quota: 4, Window: time.Second, Algorithm: core.TokenBucket}}},
		{Name: "worker", Limits: []core.Limit{core.InFlight(2)}},
	}}
	if !faulty {
		config.Store = s.Store
	}
	l := newLimiter(t, config, nil)
	config.Store = nil
	request := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(6000))*time.Millisecond)
		works, way := time.Duration(1+random.IntN(3000))*time.Millisecond, random.IntN(6)
		key, cost, hook := fmt.Sprint("k", random.IntN(modelKeys)), strconv.Itoa(1+random.IntN(3)), []string{"", "panics"}[random.IntN(2)]
		go func() {
			defer cancel()
			defer func() { _ = recover() }() // of the store or of the hook
			switch way {
			case 0:
				if d, release, _ := l.Acquire(ctx, core.Hit{Rule: "worker", Key: key}); d.Allowed {
					time.Sleep(works)
					release()
					release()
				}
				return
			case 1:
				_, _ = l.Wait(ctx, 1, core.Hit{Rule: "rate", Key: key})
				return
			}
			r := &request{ctx: ctx, header: map[string][]string{"Key": {key}, "Cost": {cost}, "Hook": {hook}}}
			d := l.Check(r)
			if !d.Allowed {
				return
			}
			time.Sleep(works)
			switch way {
			case 2:
				release, _ := d.Hold() // the connection is taken over
				l.Settle(r, d, core.Outcome{Status: 101})
				time.Sleep(works)
				release()
				release()
			case 3:
				l.Settle(r, d, core.Outcome{Status: 500, Panicked: true})
			default:
				l.Settle(r, d, core.Outcome{Status: 200})
				l.Settle(r, d, core.Outcome{Status: 200})
			}
		}()
	}
	most := int64(0)
	for range 150 {
		switch random.IntN(12) {
		case 0:
			config.Rules[0].Limits = []core.Limit{core.InFlight(int64(3 + random.IntN(3)))}
			if err := l.Reconfigure(config); err != nil {
				t.Fatal(err)
			}
		case 1:
			faults.Store("k0", true)
		case 2:
			faults.Delete("k0")
		default:
			request()
		}
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		}
		synctest.Wait()
		most = max(most, agree(t, seed, l, g))
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	agree(t, seed, l, g)
	for _, rule := range config.Rules {
		if held, queued := g.sum(rule.Name); held != 0 || queued != 0 {
			t.Errorf("seed %d: rule %s: %d slots held and %d requests in line at the end", seed, rule.Name, held, queued)
		}
	}
	if most == 0 || len(g.took) == 0 || slices.Max(g.waited) == 0 {
		t.Errorf("seed %d: nothing was held, or nobody waited: %d slots at most", seed, most)
	}
}

// agree compares what the observer has seen with what the store and the limiter know.
func agree(t *testing.T, seed uint64, l *core.Limiter, g *gauges) (held int64) {
	t.Helper()
	const many = 1000
	waiting := int64(0)
	for _, rule := range []string{"flight", "rate", "worker"} {
		want := int64(0)
		for k := range modelKeys {
			if rule == "rate" {
				continue
			}
			d, err := l.Peek(t.Context(), 1, core.Hit{Rule: rule, Key: fmt.Sprint("k", k), Quotas: []int64{many}})
			if err != nil {
				t.Fatal(err)
			}
			want += many - d.Remaining
		}
		got, queued := g.sum(rule)
		if got != want || queued < 0 {
			t.Fatalf("seed %d: rule %s: the observer has seen %d slots held, and the store counts %d; %d in line", seed, rule, got, want, queued)
		}
		held, waiting = held+got, waiting+queued
	}
	if s := l.Stats(); waiting != int64(s.Waiting) {
		t.Fatalf("seed %d: the observer has seen %d in line, and %d are", seed, waiting, s.Waiting)
	}
	return held
}

// Times are those of the request, and not of the store or of others.
func TestObserverIsToldHowLongSlotsWereHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGauges()
		config := patient(10*time.Second, core.InFlight(1))
		config.Observer = g
		l := newLimiter(t, config, nil)
		first := l.Check(&request{})
		go func() {
			second := l.Check(&request{})
			time.Sleep(5 * time.Second)
			l.Settle(&request{}, second, core.Outcome{Status: 200})
		}()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if held, queued := g.sum("r"); held != 1 || queued != 1 {
			t.Errorf("%d held, %d in line", held, queued)
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if want := []time.Duration{3 * time.Second, 5 * time.Second}; !slices.Equal(g.took, want) {
			t.Errorf("held for %v, want %v", g.took, want)
		}
		if want := []time.Duration{0, 3 * time.Second}; !slices.Equal(g.waited, want) {
			t.Errorf("waited %v, want %v", g.waited, want)
		}
	})
}

// A request that takes no slot of a rule holds none of it.
func TestObserverIsToldNothingOfSlotsThatCostNothing(t *testing.T) {
	var held []int
	observer := observeFunc(func(string, []core.Rule) core.ObserverFuncs {
		return core.ObserverFuncs{Held: func(_ context.Context, rule int, _ int64, _ time.Duration) { held = append(held, rule) }}
	})
	free := func(core.Request) (int64, error) { return 0, nil }
	l := newLimiter(t, core.Config{Observer: observer, Rules: []core.Rule{
		{Name: "free", Key: static("k"), Limits: []core.Limit{core.InFlight(1)}, Cost: free},
		{Name: "one", Key: static("k"), Limits: []core.Limit{core.InFlight(1)}},
	}}, nil)
	l.Settle(&request{}, l.Check(&request{}), core.Outcome{Status: 200})
	if !slices.Equal(held, []int{1, 1}) {
		t.Errorf("told of the rules %v, want [1 1]", held)
	}
}
