package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client has the methods of a go-redis client that the store needs.
// *redis.Client (also that of redis.NewFailoverClient), *redis.ClusterClient,
// *redis.Ring, redis.UniversalClient and the *redis.AutoPipeliner of newer
// versions have them. The application makes the client and closes it.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// exempt is a command that go-redis never repeats, whatever the client's
// MaxRetries and MaxRedirects are: if a reply is lost, the command may have run,
// and would be charged twice. A cluster client still follows MOVED and ASK.
type exempt struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (exempt) NoRetry() bool { return true }

// process runs a command and waits for its reply. A client that gathers the
// commands of several callers may return before the reply has come: Err waits
// for it. If the client panics, process returns an error.
func (s *Store) process(ctx context.Context, client Client, cmd exempt) (err error) {
	defer s.recoverPanic(&err)
	if err := client.Process(ctx, cmd); err != nil {
		return ownError(err)
	}
	return ownError(cmd.Err())
}

var errPanic = errors.New("the client panicked")

// recoverPanic turns a panic of the client, such as one in a tracing hook, into an error.
// A command with the decisions of many callers runs on a goroutine of the store. A panic
// there would end the process, because no caller and no server can recover it.
func (s *Store) recoverPanic(err *error) {
	value := recover()
	if value == nil {
		return
	}
	*err = fmt.Errorf("%w: %v", errPanic, value)
	if more, due := s.panics.due(); due {
		s.log().Error("redis: the client panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()), "more", more)
	}
}

// punctual is a client that ends each command by the deadline of its context, so that a caller
// may wait for it on its own goroutine. It is the application's client if that does so, else a
// copy that shares its connections. As a copy has no hooks, it is used only while the
// application's client has none.
type punctual struct {
	*redis.Client
	copied bool
	hooked atomic.Bool  // as of the last look
	next   atomic.Int64 // when to look again, in microseconds
}

// punctualOf returns nil if there is no such client: what a client calls for each command, or
// while it makes a connection, may keep to no deadline.
func punctualOf(c *redis.Client) *punctual {
	if c == nil {
		return nil
	}
	o := c.Options()
	if o.Addr == failoverAddr || o.Limiter != nil || o.OnConnect != nil || o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil {
		return nil
	}
	if o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0 {
		return &punctual{Client: c}
	}
	p := &punctual{Client: c.WithTimeout(0), copied: true}
	own := p.Options() // WithTimeout has copied them
	own.ContextTimeoutEnabled, own.ReadTimeout, own.WriteTimeout = true, max(0, o.ReadTimeout), max(0, o.WriteTimeout)
	if own == o || !p.Options().ContextTimeoutEnabled {
		return nil
	}
	return p
}

// failoverAddr is the address of a client of redis.NewFailoverClient.
const failoverAddr = "FailoverClient"

// ready reports whether the next command may be sent by it.
func (p *punctual) ready(now time.Time) bool {
	return p != nil && (!p.copied || !p.hooked.Load() && now.UnixMicro() < p.next.Load())
}

// look is called while the application's client writes a command. Once a second, it looks for
// functions of hooks between the client's own ones on the stack.
func (p *punctual) look(now time.Time) {
	if p == nil || !p.copied || now.UnixMicro() < p.next.Load() {
		return
	}
	const own = "github.com/redis/go-redis/v9"
	hooked, inside := false, false
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if strings.HasPrefix(frame.Function, own+".") || strings.HasPrefix(frame.Function, own+"/internal/") {
			inside = true
		} else if inside {
			hooked = !strings.HasSuffix(frame.Function, ".(*Store).process")
			break
		}
	}
	p.hooked.Store(hooked)
	p.next.Store(now.Add(time.Second).UnixMicro())
}
