package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// call is one command, from its arguments to its reply. Calls are pooled: one
// that has not ended by the deadline is left to the goroutine that waits for
// the reply.
type call struct {
	store  *Store
	args   []any
	once   *once
	cmd    *redis.Cmd
	ctx    context.Context // of the command
	cancel context.CancelFunc
	done   chan error
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan error, 1)} }}

// The places of the arguments: see script/1_arguments.lua.
const (
	argCommand = iota
	argScript
	argKeys
	argFirstKey
)

// call returns a call for the items, to which the caller adds what verbs other
// than take and peek need.
func (s *Store) call(verb any, items []namedItem) *call {
	c := calls.Get().(*call)
	c.store = s
	c.args = append(c.args[:0], evalsha, scriptSHA, len(items))
	for i := range items {
		c.args = append(c.args, items[i].name)
	}
	c.args = append(c.args, nil, verb, s.options.slackMillis, s.now())
	for i := range items {
		it := &items[i]
		c.args = append(c.args, it.rule.limits, it.Cost)
		if verb == verbBack || verb == verbRefund {
			c.args = append(c.args, it.At)
			for j := range it.Results {
				c.args = append(c.args, it.Results[j].ResetAfter.Microseconds())
			}
		}
	}
	return c
}

// arm makes the command anew, for another attempt.
func (c *call) arm(command, script any) {
	c.args[argCommand], c.args[argScript] = command, script
	keys := c.args[argKeys].(int)
	c.args[argFirstKey+keys] = c.once
	if c.store.unasked {
		c.once.state.Store(written)
		c.args[argFirstKey+keys] = c.once.encode()
	}
	c.cmd = redis.NewCmd(c.ctx, c.args...)
	if keys > 0 {
		c.cmd.SetFirstKeyPos(argFirstKey)
	}
	c.once.arm(c.cmd)
}

// do runs the call and returns its reply, which has results for items. It comes
// back within the operation's time, whatever the client does.
func (s *Store) do(op operation, c *call, items []namedItem) (reply, error) {
	s.start(op, c)
	return c.wait(op, items)
}

// start sends the command in a goroutine of its own: nothing that the client
// does then, or fails to do, keeps the caller waiting.
func (s *Store) start(op operation, c *call) {
	// The charge of a client that has hung up counts: only the waiting ends
	// with its context, and the command with the store's deadline.
	ctx := op.ctx
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	c.ctx, c.cancel = context.WithDeadline(ctx, op.end)
	c.once = &once{nonce: s.nonces.Add(1)}
	select {
	case s.running <- struct{}{}:
	case <-c.ctx.Done():
		c.cancel()
		c.done <- &Error{Class: TimedOut, Err: errBusy}
		return
	}
	c.arm(evalsha, scriptSHA)
	go s.run(c)
}

// wait returns the reply, and gives the call back, if it comes in time.
func (c *call) wait(op operation, items []namedItem) (reply, error) {
	ctx, o := c.ctx, c.once // the goroutine may be changing the rest
	select {
	case err := <-c.done:
		return c.result(err, items)
	case <-op.ctx.Done():
		return reply{}, &Error{Class: Canceled, Unknown: true, Err: context.Cause(op.ctx)}
	case <-ctx.Done():
	}
	// Both may have happened: an answer that is there is one.
	select {
	case err := <-c.done:
		return c.result(err, items)
	default:
	}
	return reply{}, &Error{Class: TimedOut, Unknown: !o.withdraw(), Err: context.DeadlineExceeded}
}

func (c *call) result(err error, items []namedItem) (reply, error) {
	var r reply
	if err == nil {
		r, err = parse(c.cmd, c.once.nonce, items)
		if err != nil && !errors.Is(err, core.ErrDamaged) {
			c.store.dropConnection(c)
		}
	}
	c.free()
	return r, err
}

func (c *call) free() {
	clear(c.args)
	c.cmd, c.once, c.store, c.ctx, c.cancel = nil, nil, nil, nil, nil
	calls.Put(c)
}

// run sends the command until a server has run it, or may have.
func (s *Store) run(c *call) {
	ctx, cancel := c.ctx, c.cancel // not the call's own any more once it is done
	err := s.process(ctx, c.cmd)
	for attempt := 0; err != nil; attempt++ {
		err = c.once.cause(err)
		noScript := redis.HasErrorPrefix(err, "NOSCRIPT")
		if noScript || ranNot(err) {
			c.once.ranNot()
		}
		if noScript && !c.hasScript() {
			// A server that has just been started, or told to forget: EVAL
			// tells it the script for everybody.
			c.arm(eval, scriptArg)
		} else if ranNot(err) && attempt < maxAttempts && pause(ctx, attempt) {
			c.arm(evalsha, scriptSHA)
		} else {
			err = classify(err, c.once)
			break
		}
		err = s.process(ctx, c.cmd)
	}
	c.done <- err
	cancel()
	<-s.running
}

// process runs a command and waits for its reply: clients that gather commands
// of many callers may return before it has come.
func (s *Store) process(ctx context.Context, cmd *redis.Cmd) error {
	var command redis.Cmder = cmd
	if s.exempts {
		command = exempt{cmd}
	}
	if err := s.client.Process(ctx, command); err != nil {
		return err
	}
	return cmd.Err()
}

func (c *call) hasScript() bool { return c.args[argCommand] == eval }

const maxAttempts = 4

// pause waits before another attempt, for a time that differs between callers.
func pause(ctx context.Context, attempt int) bool {
	d := time.Duration(2<<attempt) * time.Millisecond
	d = d/2 + rand.N(d)
	if end, _ := ctx.Deadline(); time.Until(end) <= d {
		return false // to say now what the matter is helps more
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// dropConnection is called when a reply was not that of its command: all that
// come later on the same connection would be shifted too. A client closes a
// connection on which writing fails, and gives out first the one that it was
// given back last.
func (s *Store) dropConnection(c *call) {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.timeout)
	defer cancel()
	args := append([]any(nil), c.args...)
	args[argFirstKey+args[argKeys].(int)] = unwritable{}
	cmd := redis.NewCmd(ctx, args...)
	if args[argKeys].(int) > 0 {
		cmd.SetFirstKeyPos(argFirstKey)
	}
	_ = s.client.Process(ctx, cmd)
}

type unwritable struct{}

var errUnwritable = errors.New("the connection is to be closed")

func (unwritable) MarshalBinary() ([]byte, error) { return nil, errUnwritable }

// namedItem is an item with what the store knows of it.
type namedItem struct {
	*core.Item
	rule *boundRule
	name string
}
