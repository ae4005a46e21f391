package rpctest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

var errStore = errors.New("dial tcp 10.1.2.3:6379: connection refused")

// oddStore always fails, or always answers without the shared counters.
type oddStore struct {
	core.Store
	fails bool
}

type oddCounters struct {
	core.Counters
	fails bool
}

func (s oddStore) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	return oddCounters{c, s.fails}, err
}

func (c oddCounters) Do(ctx context.Context, b *core.Batch) error {
	if c.fails {
		return errStore
	}
	err := c.Counters.Do(ctx, b)
	b.Degraded = true
	return err
}

func stores(t *testing.T, a Adapter) {
	rules := []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(2)}}}
	t.Run("a store that fails", func(t *testing.T) {
		memory := core.Must(core.NewMemory(core.MemoryConfig{}))
		c := limited(t, a, hooktest.Limiter(t, core.Config{Name: "api", Store: oddStore{memory, true}, Rules: rules})).Dial(t, direct)
		for _, kind := range Kinds {
			r := c.Do(within(t), kind, []string{""})
			if r.Code != codeUnavailable || r.Details != 0 || strings.Contains(r.Message, "10.1.2.3") || header(r, "retry-after") != "1" {
				t.Errorf("%s: %+v", kind, r)
			}
		}
	})

	t.Run("a store without the shared counters", func(t *testing.T) {
		memory := core.Must(core.NewMemory(core.MemoryConfig{Clock: hooktest.Frozen}))
		var degraded atomic.Int64
		c := a.Serve(t, App{Limits: []Limit{{Checker: hooktest.Limiter(t, core.Config{Name: "api", Store: oddStore{memory, false}, Rules: rules})}}, Handler: func(c Call) error {
			if d, _ := c.Decision(); d.Degraded {
				degraded.Add(1)
			}
			return OK(c)
		}}).Dial(t, direct)
		want(t, count(4, func(i int) Reply { return c.Do(within(t), Kinds[i], []string{""}) }), 0, 2, codeResourceExhausted, 2)
		if degraded.Load() != 2 {
			t.Errorf("%d decisions are degraded, want 2", degraded.Load())
		}
	})

	t.Run("a key function that fails", func(t *testing.T) {
		key := keyfuncs.Func(func(core.Request) (string, error) { return "", errStore })
		c := limited(t, a, hooktest.ByKey(t, key, 2)).Dial(t, direct)
		for _, kind := range Kinds {
			if r := c.Do(within(t), kind, []string{""}); r.Code != codeUnavailable || r.Details != 0 || strings.Contains(r.Message, "10.1.2.3") {
				t.Errorf("%s: %+v", kind, r)
			}
		}
	})
}

// Exactly as many calls pass as the quota allows, however many come at once.
func concurrency(t *testing.T, a Adapter) {
	c := limited(t, a, all(t, 25)).Dial(t, direct)
	codes := make([]uint32, 100)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() { codes[i] = c.Do(within(t), Kinds[i%len(Kinds)], []string{""}).Code })
	}
	wg.Wait()
	want(t, count(len(codes), func(i int) Reply { return Reply{Code: codes[i]} }), 0, 25, codeResourceExhausted, 75)
}
