package core_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// request is a request that a test makes up, and that notes what is read of it. It has only what
// the limiter itself asks for.
type request struct {
	core.Request
	ctx     context.Context
	method  string
	header  map[string][]string
	body    string
	bodyErr error
	reads   int
}

func (r *request) Context() context.Context {
	if r.ctx != nil {
		return r.ctx
	}
	return context.Background()
}

func (r *request) Method() string                    { return r.method }
func (r *request) HeaderValues(name string) []string { return r.header[name] }
func (r *request) Value(key any) any                 { return key }

func (r *request) Body(max int) ([]byte, error) {
	r.reads++
	return []byte(r.body[:min(max, len(r.body))]), r.bodyErr
}

// static is the key function of one key.
func static(key string) core.KeyFunc {
	return func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, key...), nil }
}

// fails is a key function that gives an error.
func fails(err error) core.KeyFunc {
	return func(dst []byte, _ core.Request) ([]byte, error) { return dst, err }
}

// bodyKey keys by the body.
func bodyKey(dst []byte, r core.Request) ([]byte, error) {
	b, err := r.Body(100)
	return append(dst, b...), err
}

// orSkip keys by the method, and skips requests without one.
func orSkip(dst []byte, r core.Request) ([]byte, error) {
	if r.Method() == "" {
		return dst, core.SkipRule
	}
	return append(dst, r.Method()...), nil
}

// methodKey applies to requests of a method.
func methodKey(method string) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		if r.Method() != method {
			return dst, core.SkipRule
		}
		return append(dst, "k"...), nil
	}
}

// costs is the cost of each request.
func costs(n int64) func(core.Request) (int64, error) {
	return func(core.Request) (int64, error) { return n, nil }
}

// oneRule is a configuration of a rule "r", whose requests all have the key "k".
func oneRule(limits ...core.Limit) core.Config {
	return core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: limits}}}
}

// numbered returns rules "r0", "r1" and so on for the key "k", of 10 hits a minute.
func numbered(n int) []core.Rule {
	rules := make([]core.Rule, n)
	for i := range rules {
		rules[i] = core.Rule{Name: "r" + strconv.Itoa(i), Key: static("k"), Limits: []core.Limit{core.PerMinute(10)}}
	}
	return rules
}

// bucket is a token bucket limit.
func bucket(quota int64, window time.Duration) core.Limit {
	return core.Limit{Quota: quota, Window: window, Algorithm: core.TokenBucket}
}

// fixed is a limit of a fixed window.
func fixed(quota int64, window time.Duration) core.Limit {
	return core.Limit{Quota: quota, Window: window, Algorithm: core.FixedWindow}
}

// every is a limit of each algorithm, of 100 hits an hour.
var every = []core.Limit{
	core.PerHour(100),
	{Quota: 100, Window: time.Hour, Algorithm: core.FixedWindow},
	{Quota: 100, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
	{Quota: 100, Window: time.Hour, Algorithm: core.SlidingLog},
	{Quota: 100, Window: time.Hour, Algorithm: core.TokenBucket},
}

// clock stands still until a test moves it.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.UnixMicro(1_764_000_123_456_789)} }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

func newLimiter(t testing.TB, c core.Config, clock *clock) *core.Limiter {
	t.Helper()
	if c.Store == nil && clock != nil {
		c.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	}
	return hooktest.New(t, c)
}

// around is a store whose operations and Reopens are functions over those of another store. nil:
// as the other store does.
type around struct {
	core.Store
	do     func(ctx context.Context, c core.Counters, b *core.Batch) error
	reopen func(c core.Counters, rules []core.StoreRule) (core.Counters, error)
}

func (s *around) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	return aroundCounters{c, s}, err
}

type aroundCounters struct {
	core.Counters
	s *around
}

func (c aroundCounters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	if c.s.reopen != nil {
		return c.s.reopen(c, rules)
	}
	again, err := c.Counters.Reopen(rules)
	return aroundCounters{again, c.s}, err
}

func (c aroundCounters) Do(ctx context.Context, b *core.Batch) error {
	if c.s.do == nil {
		return c.Counters.Do(ctx, b)
	}
	return c.s.do(ctx, c.Counters, b)
}

// aroundMemory is a Memory whose operations are done by do.
func aroundMemory(do func(ctx context.Context, c core.Counters, b *core.Batch) error) *around {
	return &around{Store: core.Must(core.NewMemory(core.MemoryConfig{})), do: do}
}

// counting is a store that counts operations, and fails where fault is set.
type counting struct {
	around
	takes, refunds, resets int // a peek is a take
	fault                  error
	degraded               bool
}

func newCounting() *counting {
	return countingIn(core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now})))
}

func countingIn(store core.Store) *counting {
	s := new(counting)
	s.around = around{Store: store, do: s.count}
	return s
}

func (s *counting) count(ctx context.Context, c core.Counters, b *core.Batch) error {
	switch b.Op {
	case core.OpTake, core.OpPeek:
		s.takes++
		if s.degraded { // if not, a store leaves it alone
			b.Degraded = true
		}
	case core.OpRefund:
		s.refunds++
	case core.OpReset:
		s.resets++
	}
	if s.fault != nil && b.Op != core.OpReset {
		return s.fault
	}
	return c.Do(ctx, b)
}

var errFault = errors.New("dial tcp 10.1.2.3:6379: connection refused")

// left returns how many hits a key has left.
func left(t testing.TB, l *core.Limiter, rule, key string) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), 0, core.Hit{Rule: rule, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func takeOf(t testing.TB, l *core.Limiter, rule, key string) bool {
	t.Helper()
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: rule, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Allowed
}

func reset(t testing.TB, l *core.Limiter, hits ...core.Hit) {
	t.Helper()
	if err := l.Reset(t.Context(), hits...); err != nil {
		t.Fatal(err)
	}
}
