package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// panicking is a hook that panics before some commands, and after others.
type panicking struct {
	tracing
	before, after atomic.Bool
}

func (h *panicking) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		decides := strings.HasPrefix(cmd.Name(), "eval") // others set up a connection
		if decides && h.before.Load() {
			panic("before the command")
		}
		err := next(ctx, cmd)
		if decides && h.after.Load() {
			panic("after the command")
		}
		return err
	}
}

// A panic of a hook fails the decisions of its command. It ends neither the process nor the
// decisions that come later.
func TestAPanicOfAHookFailsTheDecisionsOfItsCommand(t *testing.T) {
	clients(t, func(t *testing.T, client redisstore.Client, _ *faultproxy.Proxy, _ *redistest.Server) {
		h := new(panicking)
		client.(interface{ AddHook(hook redis.Hook) }).AddHook(h)
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		bound := bind(t, client, hourly, redisstore.Timeout(patience), redisstore.Log(log))
		take(t, bound, "before")
		const callers = 20
		for _, c := range []struct {
			panics  *atomic.Bool
			charged int64
			text    string
		}{{&h.before, 0, "before the command"}, {&h.after, 1, "after the command"}} {
			// Nobody knows when a client of the application's own type sends.
			unknown := c.charged > 0 || strings.HasSuffix(t.Name(), "/Wrapped")
			c.panics.Store(true)
			var wg sync.WaitGroup
			errs := make([]error, callers)
			for i := range callers {
				wg.Go(func() {
					errs[i] = storetest.Do(context.Background(), bound, core.OpTake, one(fmt.Sprint(c.charged, i), 1, 1))
				})
			}
			wg.Wait()
			c.panics.Store(false)
			for i, err := range errs {
				var e *redisstore.Error
				if !errors.As(err, &e) || e.Class != redisstore.ClassOther || e.Unknown != unknown || !strings.HasSuffix(err.Error(), "the client panicked: "+c.text) {
					t.Fatalf("caller %d: error %v, want a panic %s, and unknown %t", i, err, c.text, unknown)
				}
				if errors.Is(err, core.ErrNotCharged) == unknown {
					t.Fatalf("caller %d: error %v is wrong about the charge", i, err)
				}
				if got := charged(t, bound, fmt.Sprint(c.charged, i)); got != c.charged {
					t.Fatalf("caller %d: %d hits are charged, want %d", i, got, c.charged)
				}
			}
		}
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "before the command") || !strings.Contains(text, "ProcessHook") || !strings.Contains(text, "more=0") {
			t.Errorf("logged %q, want one line with the stack", text)
		}
	})
}
