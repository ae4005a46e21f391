package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// exchange is one command with one or more calls, and its reply. It is itself an
// argument of the command, the script's input (see script/main.lua): go-redis
// serialises it when it writes the command to a connection. Until then its calls
// can be withdrawn.
type exchange struct {
	store *Store
	nonce uint64 // the script sends it back, so that a reply to another command is noticed
	calls []*call
	args  []any
	input []byte

	unwritable bool // it cannot be serialised
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// The places of the arguments.
const (
	argCommand = iota
	argScript
	argKeys
	argFirstKey
)

// send sends the calls until a server has run them, or may have run them, and
// finishes each. It is the Send of the lines.
func (s *Store) send(members []*call) {
	x := exchanges.Get().(*exchange)
	x.store, x.calls = s, members
	// The charge of a client that has hung up counts: the end of its context does not end the command.
	// A call of an operation with several commands comes late: the last need not have the latest deadline.
	latest := slices.MaxFunc(members, func(c, d *call) int { return c.end.Compare(d.end) })
	ctx, cancel := context.WithDeadline(context.WithoutCancel(members[0].ctx), latest.end)
	defer cancel()
	for attempt, loads := 1, false; len(x.calls) > 0; {
		cmd := x.arm(ctx, loads)
		err := s.process(ctx, cmd)
		if !loads && redis.HasErrorPrefix(err, "NOSCRIPT") {
			// The server has just been started, or its scripts have been
			// flushed: EVAL loads the script for all clients.
			loads = true
			for _, c := range x.calls {
				c.markUnsent()
			}
			continue
		}
		if pause := x.settle(ctx, cmd, err, attempt); pause > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
		attempt, loads = attempt+1, false
	}
	clear(x.args)
	x.calls = nil
	exchanges.Put(x)
}

// arm returns the command for the next attempt. If loads is true, it contains the script.
func (x *exchange) arm(ctx context.Context, loads bool) exempt {
	x.nonce = x.store.nonces.Add(1)
	x.args = append(x.args[:0], evalsha, nil, 0)
	var used algorithms
	for _, c := range x.calls {
		for i := range c.items {
			x.args = append(x.args, c.items[i].name)
			used |= c.items[i].rule.algorithms
		}
	}
	script := scriptOf(used)
	x.args[argScript] = script.sha
	if loads {
		x.args[argCommand], x.args[argScript] = eval, script.text
	}
	x.args[argKeys] = len(x.args) - argFirstKey
	x.args = append(x.args, x)
	first := len(x.args)
	for _, c := range x.calls {
		for i := range c.items {
			c.items[i].place = x.place(first, c.items[i].limits)
		}
	}
	return newCommand(ctx, x.args)
}

// place returns the place of a rule's limits in the script's ARGV, from 2 on. It
// adds them to the arguments, from first on, unless they have been added lately.
func (x *exchange) place(first int, limits any) int {
	const lately = 16
	for i := len(x.args) - 1; i >= max(first, len(x.args)-lately); i-- {
		if x.args[i] == limits {
			return i - first + 2
		}
	}
	x.args = append(x.args, limits)
	return len(x.args) - first + 1
}

// exempt is a command that go-redis never repeats, whatever the client's
// MaxRetries and MaxRedirects are: if a reply is lost, the command may have run,
// and would be charged twice. A cluster client still follows MOVED and ASK.
type exempt struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (exempt) NoRetry() bool { return true }

// newCommand returns a command with these arguments. It tells the client the
// place of the first key, which decides the server.
func newCommand(ctx context.Context, args []any) exempt {
	cmd := redis.NewCmd(ctx, args...)
	if args[argKeys].(int) > 0 {
		cmd.SetFirstKeyPos(argFirstKey)
	}
	return exempt{cmd}
}

var errPanic = errors.New("the client panicked")

// process runs a command and waits for its reply.
func (s *Store) process(ctx context.Context, cmd exempt) (err error) {
	defer s.recovered(&err)
	return s.client.Process(ctx, cmd)
}

// recovered is deferred by what calls the client, which may panic, as in a tracing hook. It makes an
// error of the panic, because a panic on a goroutine of the store would end the process.
func (s *Store) recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("%w: %v", errPanic, value)
		s.panics.log(s, "redis: the client panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
	}
}

// bounded runs f and returns by the store's deadline, or when ctx ends. A client may ignore both: f
// then goes on.
func bounded[T any](ctx context.Context, s *Store, f func(context.Context) (T, error)) (value T, err error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.timeout)
		defer cancel()
		var r result
		defer func() { done <- r }()
		defer s.recovered(&r.err)
		r.value, r.err = f(own)
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return value, context.Cause(ctx)
	case <-time.After(s.options.timeout):
		return value, context.DeadlineExceeded
	}
}

// MarshalBinary implements encoding.BinaryMarshaler: it returns the script's input, with the
// calls that have not been withdrawn.
func (x *exchange) MarshalBinary() ([]byte, error) {
	if x.unwritable {
		return nil, errUnwritable
	}
	le := binary.LittleEndian
	b := le.AppendUint64(x.input[:0], x.nonce)
	b = le.AppendUint32(b, x.store.options.slackMillis)
	b = le.AppendUint32(b, 0)
	decisions, keys := 0, 0
	for _, c := range x.calls {
		first := keys
		keys += len(c.items)
		if !c.markSent() {
			continue
		}
		decisions++
		b = append(b, c.verb, 0, 0, 0, 0)
		b = le.AppendUint32(b, uint32(first))
		b = le.AppendUint32(b, uint32(len(c.items)))
		b = le.AppendUint64(b, uint64(c.time))
		start, resets := len(b), c.resets
		for i := range c.items {
			it := &c.items[i]
			b = le.AppendUint32(b, uint32(it.place))
			b = le.AppendUint64(b, uint64(it.cost))
			if c.verb == verbRefund {
				n := len(it.rule.meters)
				b = le.AppendUint64(b, uint64(it.at))
				for _, reset := range resets[:n] {
					b = le.AppendUint64(b, uint64(reset))
				}
				resets = resets[n:]
			}
		}
		le.PutUint32(b[start-callHead+1:], uint32(len(b)-start))
	}
	x.input = b
	if decisions == 0 {
		return nil, errWithdrawn
	}
	le.PutUint32(b[inputDecisions:], uint32(decisions))
	return b, nil
}

// inputDecisions is the place of the number of decisions in the input, and callHead how many
// bytes a call without items takes there.
const inputDecisions, callHead = 12, 21

// String is what tracing hooks print.
func (x *exchange) String() string { return "decisions" }

// dropConnection closes the connection that the last reply came from. If that was the reply to
// another command, all later replies on the connection would be, too. It relies on two habits
// of a client: it closes a connection on which writing fails, and it uses first
// the connection that was returned last.
func (x *exchange) dropConnection(ctx context.Context) {
	x.unwritable = true
	_ = x.store.process(ctx, newCommand(ctx, x.args))
	x.unwritable = false
}

var errUnwritable = errors.New("the connection is to be closed")

// mostRepeats is how often a command is sent again.
const mostRepeats = 4

// settle finishes the calls that have run or may have run, and those that have no time left. It leaves
// those that have not run and may be sent again, and returns how long to wait before that.
func (x *exchange) settle(ctx context.Context, cmd exempt, err error, attempt int) (pause time.Duration) {
	if err == nil && !x.read(cmd.Val()) {
		err = &Error{Unknown: true, Err: errShape}
		x.dropConnection(ctx)
	}
	if err != nil && len(x.calls) > 1 && begins(err, []string{"CROSSSLOT ", "TRYAGAIN ", "NOPERM "}) {
		// The keys are in several slots, or their slot is moving and some are already on the other
		// server, or the user may have no permission for one of the keys: each call goes by itself.
		if crossesSlots(err) {
			x.store.layout.Store(oneSlot)
		}
		for _, c := range x.calls {
			c.markUnsent()
			x.store.alone.Go(c)
		}
		x.calls = nil
		return 0
	}
	left, demoted := x.calls[:0], false
	for _, c := range x.calls {
		if err != nil {
			c.err = err
		}
		if c.err == nil {
			c.done <- struct{}{}
			continue
		}
		again := ranNot(c.err)
		if again {
			c.markUnsent()
			demoted = demoted || err == nil && redis.HasErrorPrefix(c.err, "READONLY")
			pause = time.Duration(1<<attempt) * time.Millisecond
		}
		c.err = classify(c.err, c.state.Load() == sent)
		if again && attempt <= mostRepeats && !c.gone() && time.Until(c.end) >= pause {
			left = append(left, c)
		} else {
			c.done <- struct{}{} // its error tells more than a timeout
		}
	}
	x.calls = left
	if demoted {
		// The server has become a replica. If the address is that of any primary, a new connection
		// finds the new one. A client closes the connection itself if the whole command fails so.
		x.dropConnection(ctx)
	}
	if len(left) == 0 {
		return 0
	}
	return pause
}

// The script's statuses of a call: see script/main.lua.
const (
	statusMade   = 0
	statusFailed = 2

	// Bits of the status of a call that was made.
	bitUnreadable = 1
	bitDenied     = 4
	bitAhead      = 8
)

// read cuts the reply into those of the calls: reply and err of each. A server, a proxy or a
// connection whose replies are out of step may send anything: if this is not the reply to the
// command, read returns false.
func (x *exchange) read(value any) bool {
	text, _ := value.(string)
	le := binary.LittleEndian
	if len(text) < replyHead || le.Uint64([]byte(text[:replyHead])) != x.nonce {
		return false
	}
	text = text[replyHead:]
	for _, c := range x.calls {
		if c.state.Load() == withdrawn {
			c.err = errWithdrawn
			continue
		}
		if text == "" {
			return false
		}
		status, size := text[0], c.answer
		text = text[1:]
		if status == statusFailed && len(text) >= 4 {
			size, text = int(le.Uint32([]byte(text[:4]))), text[4:]
		} else if status&^(bitUnreadable|bitDenied|bitAhead) != statusMade {
			return false
		}
		if size > len(text) {
			return false
		}
		part := text[:size]
		text = text[size:]
		if status == statusFailed {
			c.err = scriptError(part)
		} else {
			c.err, c.reply = nil, reply{text: part, denied: status&bitDenied != 0, unreadable: status&bitUnreadable != 0, ahead: status&bitAhead != 0}
		}
	}
	return text == ""
}
