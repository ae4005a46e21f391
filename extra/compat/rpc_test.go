package compat

import (
	"context"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/policy"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestAPolicyFileLimitsCalls(t *testing.T) {
	eachRPC(t, func(t *testing.T, s rpc) {
		set, err := policy.Load(writeFile(t, `
policies:
  - name: streams
    match: {paths: [/grpc.health.v1.Health/Watch]}
    limits: 1/h
  - name: by-key
    match: {paths: ["/grpc.health.v1.Health/*"]}
    key: header["X-Api-Key"]
    limits: 3/h
`))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = set.Close() })
		call := s.serve(t, set, &health{})
		by := func(method, key string) func(int) (uint32, string) {
			return func(int) (uint32, string) { return call(t.Context(), method, "", "X-Api-Key", key) }
		}
		codes(t, "a stream", by(watchRPC, "a"), ok, resourceExhausted)
		codes(t, "the rest of the key", by(checkRPC, "a"), ok, ok, resourceExhausted)
		codes(t, "another key", by(checkRPC, "b"), ok, ok, ok, resourceExhausted)
		codes(t, "a stream of another key", by(watchRPC, "c"), resourceExhausted)
	})
}

func TestAPolicyFileBoundsWhatRunsAndMakesCallsWait(t *testing.T) {
	eachRPC(t, func(t *testing.T, s rpc) {
		set, err := policy.Load(writeFile(t, `
policies:
  - name: slow
    in-flight: 1
    wait: 20s
`))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = set.Close() })
		h := &health{entered: make(chan struct{}), leave: make(chan struct{})}
		call := s.serve(t, set, h)
		done := make(chan uint32, 3)
		for range 3 {
			go func() {
				code, _ := call(t.Context(), checkRPC, "")
				done <- code
			}()
		}
		for range 3 {
			<-h.entered
			select {
			case <-h.entered:
				t.Fatal("two calls run at once")
			default:
			}
			h.leave <- struct{}{}
			if code := <-done; code != ok {
				t.Errorf("code %d", code)
			}
		}
	})
}

// A field of the body is a mistake in a policy for calls: the log names it, and the client is told
// that its call is wrong, not that the service is away.
func TestAFieldOfTheBodyIsNoKeyOfACall(t *testing.T) {
	for _, key := range []string{`form["user"]`, `json["user"]`, `json["user.name"]`} {
		t.Run(key, func(t *testing.T) {
			eachRPC(t, func(t *testing.T, s rpc) {
				log := &lines{}
				set, err := policy.Load(writeFile(t, "policies: [{name: p, key: '"+key+"', limits: 3/h}]"), policy.Log(log.logger()))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = set.Close() })
				call := s.serve(t, set, &health{})
				for _, method := range []string{checkRPC, watchRPC} {
					codes(t, method, func(int) (uint32, string) { return call(t.Context(), method, "") }, invalidArgument, invalidArgument)
				}
				if n := strings.Count(log.String(), "PostField cannot read a call"); n != 1 {
					t.Errorf("the log has the line %d times:\n%s", n, log)
				}
			})
		})
	}
}

func TestAGuardOfAField(t *testing.T) {
	eachRPC(t, func(t *testing.T, s rpc) {
		log := &lines{}
		guard, err := login.NewGuard(login.Config{Field: "username", Log: log.logger()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = guard.Close() })
		call := s.serve(t, guard, &health{})
		for _, method := range []string{checkRPC, watchRPC} {
			codes(t, method, func(int) (uint32, string) { return call(t.Context(), method, "alice:wrong") }, invalidArgument, invalidArgument)
		}
		if n := strings.Count(log.String(), "PostField cannot read a call"); n != 1 {
			t.Errorf("the log has the line %d times:\n%s", n, log)
		}
	})
}

func TestAGuardOfAMessage(t *testing.T) {
	eachRPC(t, func(t *testing.T, s rpc) {
		guard, err := login.NewGuard(login.Config{Sources: []core.KeyFunc{keyfuncs.Func(func(r core.Request) (string, error) {
			m, _ := s.message(r).(*request)
			user, _, _ := strings.Cut(m.GetService(), ":")
			return user, nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = guard.Close() })
		call := s.serve(t, guard, &health{})
		as := func(user string) func(int) (uint32, string) {
			return func(int) (uint32, string) { return call(t.Context(), checkRPC, user) }
		}
		const wrong = unauthenticated
		codes(t, "guesses", as("alice:wrong"), wrong, wrong, wrong, wrong)
		codes(t, "another spelling", as(" ALICE:wrong"), wrong, resourceExhausted)
		codes(t, "the right password, too late", as("alice:right"), resourceExhausted)
		codes(t, "somebody else", as("bob:wrong"), wrong, wrong, wrong, wrong)
		codes(t, "bob's password", as("bob:right"), ok)
		codes(t, "after a success", as("bob:wrong"), wrong, wrong, wrong, wrong, wrong, resourceExhausted)
		codes(t, "no name", as(":wrong"), invalidArgument)
		codes(t, "a stream has no message yet", func(int) (uint32, string) { return call(t.Context(), watchRPC, "carol:wrong") }, invalidArgument)
	})
}

// away is a store that does not answer while it is away.
type away struct {
	core.Store
	mu   sync.Mutex
	gone bool
}

func (a *away) set(gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = gone
}

func (a *away) Open(name string, rules []core.StoreRule) (core.Counters, error) {
	c, err := a.Store.Open(name, rules)
	return &awayCounters{c, a}, err
}

type awayCounters struct {
	core.Counters
	store *away
}

func (c *awayCounters) Do(ctx context.Context, b *core.Batch) error {
	c.store.mu.Lock()
	gone := c.store.gone
	c.store.mu.Unlock()
	if gone {
		return io.ErrUnexpectedEOF
	}
	return c.Counters.Do(ctx, b)
}

func TestCallsWhileTheStoreIsAway(t *testing.T) {
	eachRPC(t, func(t *testing.T, s rpc) {
		for mode, want := range map[resilient.Mode]map[uint32]int{
			resilient.Local:      {ok: 3, resourceExhausted: 3},
			resilient.FailOpen:   {ok: 6},
			resilient.FailClosed: {unavailable: 6},
		} {
			t.Run(mode.String(), func(t *testing.T) {
				store := &away{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}
				r, err := resilient.New(store, resilient.Config{OnFailure: mode, Retry: 10 * time.Millisecond, Log: (&lines{}).logger()})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = r.Close() })
				l, err := core.New(core.Config{Name: "calls", Store: r, Log: (&lines{}).logger(), Rules: []core.Rule{{Key: keyfuncs.Header("user"), Limits: []core.Limit{core.PerHour(3)}}}})
				if err != nil {
					t.Fatal(err)
				}
				call := s.serve(t, l, &health{})
				six := func(user string) map[uint32]int {
					got := map[uint32]int{}
					for i := range 6 {
						code, _ := call(t.Context(), []string{checkRPC, watchRPC}[i%2], "", "user", user)
						got[code]++
					}
					return got
				}
				store.set(true)
				if got := six("a"); !maps.Equal(got, want) {
					t.Errorf("away: %v, want %v", got, want)
				}
				store.set(false)
				for !r.Up() {
					_, _ = call(t.Context(), checkRPC, "", "user", "asks whether it is back")
				}
				if got := six("b"); !maps.Equal(got, map[uint32]int{ok: 3, resourceExhausted: 3}) {
					t.Errorf("back: %v", got)
				}
			})
		}
	})
}
