package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// request is a request that a test makes up, and that notes what is read of it.
type request struct {
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
func (r *request) Path() string                      { return "/path" }
func (r *request) EscapedPath() string               { return "/path" }
func (r *request) RawQuery() string                  { return "" }
func (r *request) Route() string                     { return "/route" }
func (r *request) PathValue(string) string           { return "" }
func (r *request) RemoteAddr() string                { return "192.0.2.1:1" }
func (r *request) HeaderValues(name string) []string { return r.header[name] }
func (r *request) Cookie(string) (string, bool)      { return "", false }
func (r *request) Query(string) (string, bool)       { return "", false }
func (r *request) Value(any) any                     { return nil }

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

// clock stands still until a test moves it.
type clock struct{ now time.Time }

func newClock() *clock                   { return &clock{time.UnixMicro(1_764_000_123_456_789)} }
func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

func newLimiter(t testing.TB, c core.Config, clock *clock) *core.Limiter {
	t.Helper()
	if c.Store == nil && clock != nil {
		c.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	}
	l, err := core.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// counting is a store that counts operations, and fails where fault is set.
type counting struct {
	core.Store
	takes, refunds, resets int
	fault                  error
	degraded               bool
}

type countingBound struct {
	core.Bound
	s *counting
}

func newCounting() *counting {
	return &counting{Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now}))}
}

func (s *counting) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	return countingBound{b, s}, err
}

func (b countingBound) Take(ctx context.Context, batch *core.Batch) error {
	b.s.takes++
	if b.s.fault != nil {
		return b.s.fault
	}
	if b.s.degraded { // if not, a store leaves it alone
		batch.Degraded = true
	}
	return b.Bound.Take(ctx, batch)
}

func (b countingBound) Refund(ctx context.Context, batch *core.Batch) error {
	b.s.refunds++
	if b.s.fault != nil {
		return b.s.fault
	}
	return b.Bound.Refund(ctx, batch)
}

func (b countingBound) Reset(ctx context.Context, batch *core.Batch) error {
	b.s.resets++
	return b.Bound.Reset(ctx, batch)
}

var errFault = errors.New("dial tcp 10.1.2.3:6379: connection refused")

func left(t testing.TB, l *core.Limiter, rule, key string) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), 0, core.Hit{Rule: rule, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func ExampleNew() {
	limiter, err := core.New(core.Config{
		Name:  "jobs",
		Rules: []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerMinute(2)}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "tenant", Key: "42"})
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}
