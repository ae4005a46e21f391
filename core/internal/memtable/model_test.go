package memtable_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/internal/memtable"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// storeModel is a Memory beside a plain Go map that must agree with it. The map
// has the same arithmetic (the meters) and no table, shard or eviction. What
// the store may do on its own, evicting and forgetting expired keys, the model
// learns by looking which keys are still in the tables, and checks.
type storeModel struct {
	tb      testing.TB
	r       *rand.Rand
	m       *core.Memory
	tables  *memtable.Tables // of m
	now     int64            // microseconds
	latest  int64            // the latest time so far
	bounds  []core.Counters
	rules   [][]core.StoreRule // by limiter
	keys    map[modelKey]*modelState
	taken   []modelTake // takes that can be refunded
	evicted uint64      // as Stats
}

type modelKey struct {
	limiter int
	rule    string
	key     string
}

type modelState struct {
	words     map[meter.Identity][]uint64
	exhausted bool // since it was inserted, it may have used up a limit: a quota or the clock has changed
}

type modelTake struct {
	limiter int
	batch   core.Batch
}

func newStoreModel(tb testing.TB, seed uint64, maxKeys int) *storeModel {
	s := &storeModel{
		tb: tb, r: rand.New(rand.NewPCG(seed, uint64(maxKeys))),
		now: 1_764_000_000_000_000, keys: map[modelKey]*modelState{},
	}
	s.m = core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: func() time.Time { return time.UnixMicro(s.now) }}))
	s.tables = memtable.Of(s.m)
	for limiter, name := range []string{"a", "b"} {
		s.rules = append(s.rules, s.someRules())
		s.bounds = append(s.bounds, core.Must(s.m.Open(name, s.rules[limiter])))
	}
	return s
}

var modelLimits = []core.Limit{
	{Quota: 3, Window: time.Second},
	{Quota: 1, Window: time.Minute},
	{Quota: 2, Window: 10 * time.Second, Aligned: true},
	{Quota: 2, Window: 5 * time.Second, Algorithm: core.FixedWindow},
	{Quota: 4, Window: 3 * time.Second, Algorithm: core.TokenBucket, Burst: 6},
	{Quota: 5, Window: 2 * time.Second, Algorithm: core.BucketedWindow, Precision: 100 * time.Millisecond},
	{Quota: 40, Window: 20 * time.Second, Algorithm: core.SlidingLog},
	{Quota: 2, Window: 5 * time.Second, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Second, Max: 8 * time.Second, Factor: 2, Decay: 8 * time.Second}},
}

func (s *storeModel) someRules() (rules []core.StoreRule) {
	names := []string{"r0", "r1", "r2", "r3"}
	s.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+s.r.IntN(3)] {
		rule := core.StoreRule{Name: name}
		for _, i := range s.r.Perm(len(modelLimits))[:1+s.r.IntN(3)] {
			l := modelLimits[i]
			l.Quota = max(1, l.Quota+int64(s.r.IntN(3))-1)
			rule.Limits = append(rule.Limits, l)
		}
		rules = append(rules, rule)
	}
	return rules
}

// step does one operation and compares.
func (s *storeModel) step() {
	s.tb.Helper()
	limiter := s.r.IntN(len(s.bounds))
	switch n := s.r.IntN(1000); {
	case n < 550:
		s.take(limiter, 1, false)
	case n < 700:
		s.take(limiter, 2+s.r.IntN(4), false)
	case n < 740:
		s.take(limiter, 1+s.r.IntN(3), true)
	case n < 800:
		s.refund()
	case n < 880:
		s.reset(limiter, 1+s.r.IntN(3))
	case n < 884:
		s.resetAll(limiter)
	case n < 988:
		s.now += int64(s.r.IntN(200_000))
	case n < 992:
		s.now += int64(s.r.IntN(100_000_000))
	case n < 995:
		s.now -= int64(s.r.IntN(3_000_000))
	case n < 998:
		s.rebind(limiter)
	default:
		for range 2 * s.tables.MaxKeys() {
			s.take(limiter, 1, false)
		}
	}
	s.latest = max(s.latest, s.now)
}

func (s *storeModel) take(limiter, n int, peek bool) {
	s.tb.Helper()
	items := s.someItems(limiter, n)
	s.learn(nil)
	want, wants := true, [][]core.Result{}
	for i := range items {
		var results []core.Result
		for _, l := range s.rules[limiter][items[i].Rule].Limits {
			m, w := s.state(s.key(limiter, &items[i]), l, 0)
			var r core.Result
			m.Decide((*meter.Result)(&r), w, s.now, items[i].Cost)
			m.Report((*meter.Result)(&r), w, s.now, items[i].Cost)
			want = want && r.Allowed
			results = append(results, r)
		}
		wants = append(wants, results)
	}
	batch, op := core.Batch{Items: items}, core.OpTake
	if peek {
		op = core.OpPeek
	}
	if err := do(context.Background(), s.bounds[limiter], op, &batch); err != nil {
		s.tb.Fatal(err)
	}
	if batch.Allowed != want {
		s.tb.Fatalf("allowed: %v, want %v: %+v", batch.Allowed, want, items)
	}
	var ks, charged, inserted []modelKey
	for i := range items {
		k := s.key(limiter, &items[i])
		ks = append(ks, k)
		if want && !peek && items[i].Cost > 0 {
			charged = append(charged, k)
			if s.keys[k] == nil {
				inserted = append(inserted, k)
			}
			s.charge(k, &items[i], wants[i])
		}
		if !slices.Equal(items[i].Results, wants[i]) {
			s.tb.Fatalf("key %v: %+v, want %+v", k, items[i].Results, wants[i])
		}
	}
	if want && !peek {
		s.taken = append(s.taken, modelTake{limiter, batch})
	}
	s.learn(func(gone []modelKey) { s.checkEvicted(ks, gone, charged, inserted) })
}

func (s *storeModel) charge(k modelKey, item *core.Item, want []core.Result) {
	words := map[meter.Identity][]uint64{}
	state := &modelState{words: words}
	if old := s.keys[k]; old != nil {
		state.exhausted = old.exhausted
	}
	for j, l := range s.limits(k) {
		m, w := s.state(k, l, item.Cost)
		m.Charge((*meter.Result)(&want[j]), w, s.now, item.Cost)
		m.Report((*meter.Result)(&want[j]), w, s.now, item.Cost)
		words[meter.FromCore(l).Identity()] = w
		state.exhausted = state.exhausted || want[j].Remaining == 0
	}
	s.keys[k] = state
}

func (s *storeModel) refund() {
	if len(s.taken) == 0 {
		return
	}
	i := s.r.IntN(len(s.taken))
	take := s.taken[i]
	s.taken = slices.Delete(s.taken, i, i+1)
	s.learn(nil)
	for i := range take.batch.Items {
		item := &take.batch.Items[i]
		k := s.key(take.limiter, item)
		if s.keys[k] == nil {
			continue
		}
		for j, l := range s.limits(k) {
			m, w := s.state(k, l, 0)
			m.Refund(w, s.now, item.At, int64(item.Results[j].ResetAfter/time.Microsecond), item.Cost)
			s.keys[k].words[meter.FromCore(l).Identity()] = w
		}
	}
	if err := do(context.Background(), s.bounds[take.limiter], core.OpRefund, &take.batch); err != nil {
		s.tb.Fatal(err)
	}
}

func (s *storeModel) reset(limiter, n int) {
	batch := core.Batch{Items: s.someItems(limiter, n)}
	if err := do(context.Background(), s.bounds[limiter], core.OpReset, &batch); err != nil {
		s.tb.Fatal(err)
	}
	for i := range batch.Items {
		delete(s.keys, s.key(limiter, &batch.Items[i]))
	}
}

func (s *storeModel) resetAll(limiter int) {
	for k := range s.keys {
		i := slices.IndexFunc(s.rules[limiter], func(r core.StoreRule) bool { return r.Name == k.rule })
		if k.limiter != limiter || i < 0 {
			continue
		}
		batch := core.Batch{Items: []core.Item{{Rule: i, Key: []byte(k.key)}}}
		if err := do(context.Background(), s.bounds[limiter], core.OpReset, &batch); err != nil {
			s.tb.Fatal(err)
		}
		delete(s.keys, k)
	}
}

func (s *storeModel) rebind(limiter int) {
	s.learn(nil)
	old, rules := s.bounds[limiter], s.someRules()
	s.bounds[limiter] = core.Must(old.Reopen(rules))
	s.rules[limiter] = rules
	for k, state := range s.keys {
		switch i := slices.IndexFunc(rules, func(r core.StoreRule) bool { return r.Name == k.rule }); {
		case k.limiter != limiter:
		case i < 0:
			delete(s.keys, k)
		default:
			state.exhausted = true
			for id := range state.words {
				if !slices.ContainsFunc(rules[i].Limits, func(l core.Limit) bool { return meter.FromCore(l).Identity() == id }) {
					delete(state.words, id)
				}
			}
		}
	}
	s.taken = slices.DeleteFunc(s.taken, func(t modelTake) bool { return t.limiter == limiter })
	for range 64 { // every shard takes the new rules over
		for i := range rules {
			s.look(limiter, i, []byte{byte(s.r.Uint32()), 255, 255, 255})
		}
	}
	// A token bucket pays its debt off at the old quota until somebody looks.
	for k := range s.keys {
		if k.limiter == limiter {
			s.look(limiter, slices.IndexFunc(rules, func(r core.StoreRule) bool { return r.Name == k.rule }), []byte(k.key))
			for _, l := range s.limits(k) {
				_, w := s.state(k, l, 0)
				s.keys[k].words[meter.FromCore(l).Identity()] = w
			}
		}
	}
}

func (s *storeModel) look(limiter, rule int, key []byte) {
	item := core.Item{Rule: rule, Key: key, Cost: 1, Results: make([]core.Result, len(s.rules[limiter][rule].Limits))}
	if err := do(context.Background(), s.bounds[limiter], core.OpPeek, &core.Batch{Items: []core.Item{item}}); err != nil {
		s.tb.Fatal(err)
	}
}

// do does an operation of a store's counters with a batch.
func do(ctx context.Context, c core.Counters, op core.Op, b *core.Batch) error {
	b.Op = op
	return c.Do(ctx, b)
}
