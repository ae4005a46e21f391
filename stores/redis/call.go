package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// call is one command, from its arguments to its reply. Calls are pooled. A
// call that has not ended by the deadline is left to the goroutine that waits
// for the reply.
type call struct {
	store  *Store
	args   []any
	nonce  *nonce
	cmd    exempt
	ctx    context.Context // of the command
	cancel context.CancelFunc
	done   chan error
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan error, 1)} }}

// The places of the arguments: see script/arguments.lua.
const (
	argCommand = iota
	argScript
	argKeys
	argFirstKey
)

// call returns a call for the items. The caller adds the arguments that only
// verbs other than take and peek need.
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

// arm makes the command for the next attempt.
func (c *call) arm(command, script any) {
	c.args[argCommand], c.args[argScript] = command, script
	keys := c.args[argKeys].(int)
	c.args[argFirstKey+keys] = c.nonce
	c.cmd = newCommand(c.ctx, c.args)
}

// newCommand returns a command with these arguments. It tells the client the
// place of the first key, which decides the server.
func newCommand(ctx context.Context, args []any) exempt {
	cmd := redis.NewCmd(ctx, args...)
	if args[argKeys].(int) > 0 {
		cmd.SetFirstKeyPos(argFirstKey)
	}
	return exempt{cmd}
}

// do runs the call and returns its reply, which has results for items. It
// returns within the operation's time, whatever the client does.
func (s *Store) do(op operation, c *call, items []namedItem) (reply, error) {
	s.start(op, c)
	return c.wait(op, items)
}

// start sends the command in a goroutine of its own, so that a client that
// hangs does not keep the caller waiting.
func (s *Store) start(op operation, c *call) {
	// The charge of a client that has hung up counts: its context ends only the
	// waiting, and the store's deadline ends the command.
	ctx := op.ctx
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	c.ctx, c.cancel = context.WithDeadline(ctx, op.end)
	c.nonce = &nonce{number: s.nonces.Add(1)}
	if s.gathers {
		c.nonce.state.Store(sent)
	}
	select {
	case s.running <- struct{}{}:
	case <-c.ctx.Done():
		c.cancel()
		c.done <- &Error{Class: ClassTimedOut, Err: errBusy}
		return
	}
	c.arm(evalsha, scriptSHA)
	go s.run(c)
}

// wait returns the reply, and returns the call to the pool, if the reply comes
// in time.
func (c *call) wait(op operation, items []namedItem) (reply, error) {
	ctx, n := c.ctx, c.nonce // the goroutine may be changing the rest
	select {
	case err := <-c.done:
		return c.result(err, items)
	case <-op.ctx.Done():
		return reply{}, &Error{Class: ClassCanceled, Unknown: true, Err: context.Cause(op.ctx)}
	case <-ctx.Done():
	}
	// Both may have happened: a reply that has come is used.
	select {
	case err := <-c.done:
		return c.result(err, items)
	default:
	}
	return reply{}, &Error{Class: ClassTimedOut, Unknown: !n.withdraw(), Err: context.DeadlineExceeded}
}

func (c *call) result(err error, items []namedItem) (reply, error) {
	var r reply
	if err == nil {
		r, err = parse(c.cmd.Cmd, c.nonce.number, items)
		if err != nil && !errors.Is(err, core.ErrDamaged) {
			c.store.dropConnection(c)
		}
	}
	c.free()
	return r, err
}

func (c *call) free() {
	clear(c.args)
	c.cmd, c.nonce, c.store, c.ctx, c.cancel = exempt{}, nil, nil, nil, nil
	calls.Put(c)
}

// run sends the command until a server has run it, or may have run it.
func (s *Store) run(c *call) {
	ctx, cancel := c.ctx, c.cancel // once it is done they are not the call's any more
	err := s.process(ctx, c.cmd)
	for attempt := 0; err != nil; attempt++ {
		noScript := redis.HasErrorPrefix(err, "NOSCRIPT")
		if (noScript || ranNot(err)) && !s.gathers {
			c.nonce.ranNot()
		}
		if noScript && !c.hasScript() {
			// The server has just been started, or its scripts have been
			// flushed: EVAL loads the script for all clients.
			c.arm(eval, scriptArg)
		} else if ranNot(err) && attempt < maxAttempts && pause(ctx, attempt) {
			c.arm(evalsha, scriptSHA)
		} else {
			err = classify(err, c.nonce)
			break
		}
		err = s.process(ctx, c.cmd)
	}
	c.done <- err
	cancel()
	<-s.running
}

// process runs a command and waits for its reply. A client that gathers the
// commands of several callers may return before the reply has come: Err waits
// for it.
func (s *Store) process(ctx context.Context, cmd exempt) error {
	if err := s.client.Process(ctx, cmd); err != nil {
		return err
	}
	return cmd.Err()
}

func (c *call) hasScript() bool { return c.args[argCommand] == eval }

// dropConnection is called when a reply was not that of its command: all later
// replies on the same connection would be shifted too. It relies on two habits
// of a client: it closes a connection on which writing fails, and it uses first
// the connection that was returned last.
func (s *Store) dropConnection(c *call) {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.timeout)
	defer cancel()
	args := append([]any(nil), c.args...)
	args[argFirstKey+args[argKeys].(int)] = unwritable{}
	_ = s.client.Process(ctx, newCommand(ctx, args))
}

type unwritable struct{}

var errUnwritable = errors.New("the connection is to be closed")

func (unwritable) MarshalBinary() ([]byte, error) { return nil, errUnwritable }

// namedItem is an item with the store's data for it.
type namedItem struct {
	*core.Item
	rule *boundRule
	name string
}
