package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
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
	fixed bool // input is what is sent
	here  bool // it is sent by store.here
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
func (s *Store) send(e *joining.Exchange[*call]) {
	x := exchanges.Get().(*exchange)
	x.store, x.calls = s, append(x.calls, e.Members...)
	ctx, cancel := x.context()
	defer cancel()
	client := s.client
	if x.here = e.Here; x.here {
		client = s.here
	}
	script, loads, reusable := x.script(), false, !s.gathers
	for attempt := 0; ; {
		cmd := x.arm(ctx, script, loads)
		err := s.process(ctx, client, cmd)
		if !loads && redis.HasErrorPrefix(err, "NOSCRIPT") {
			// The server has just been started, or its scripts have been
			// flushed: EVAL loads the script for all clients.
			loads = true
			for _, c := range x.calls {
				c.ranNot()
			}
			continue
		}
		x.settle(cmd, err)
		reusable = reusable && err == nil
		d := pauseBefore(attempt)
		attempt++
		x.giveUp(time.Now().Add(d), attempt > mostRepeats)
		if len(x.calls) == 0 {
			break
		}
		pause(ctx, d)
		loads = false
	}
	if reusable {
		clear(x.args)
		exchanges.Put(x)
	}
}

// script returns the script for the algorithms of all calls.
func (x *exchange) script() *script {
	var used algorithms
	for _, c := range x.calls {
		for i := range c.items {
			used |= c.items[i].rule.algorithms
		}
	}
	return library.of(used)
}

// context returns the context of the command: with the values of the first caller's,
// and the latest deadline. The charge of a client that has hung up counts: the end
// of its context does not end the command.
func (x *exchange) context() (context.Context, context.CancelFunc) {
	ctx, end := x.calls[0].ctx, x.calls[0].end
	for _, c := range x.calls[1:] {
		if c.end.After(end) {
			end = c.end
		}
	}
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithDeadline(ctx, end)
}

// arm returns the command for the next attempt, which loads the script or knows it loaded.
func (x *exchange) arm(ctx context.Context, script *script, loads bool) exempt {
	x.nonce = x.store.nonces.Add(1)
	if loads {
		x.args = append(x.args[:0], eval, script.text, 0)
	} else {
		x.args = append(x.args[:0], evalsha, script.sha, 0)
	}
	for _, c := range x.calls {
		for i := range c.items {
			x.args = append(x.args, c.items[i].name)
		}
	}
	x.args[argKeys] = len(x.args) - argFirstKey
	x.args = append(x.args, x)
	first := len(x.args)
	for _, c := range x.calls {
		for i := range c.items {
			it := &c.items[i]
			it.place = x.place(first, it.texts)
		}
	}
	x.fixed = false
	if x.store.gathers {
		// The client may serialise it at any time, also after the reply has been
		// given up. If it could not be serialised then, the commands of other callers
		// would fail with it.
		input, err := x.serialise()
		x.input, x.fixed = input, err == nil
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

// newCommand returns a command with these arguments. It tells the client the
// place of the first key, which decides the server.
func newCommand(ctx context.Context, args []any) exempt {
	cmd := redis.NewCmd(ctx, args...)
	if args[argKeys].(int) > 0 {
		cmd.SetFirstKeyPos(argFirstKey)
	}
	return exempt{cmd}
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (x *exchange) MarshalBinary() ([]byte, error) {
	if x.fixed {
		return x.input, nil
	}
	return x.serialise()
}

func (x *exchange) serialise() ([]byte, error) {
	now := time.Now()
	if !x.here {
		x.store.here.look(now)
	}
	le := binary.LittleEndian
	b := le.AppendUint64(x.input[:0], x.nonce)
	b = le.AppendUint32(b, x.store.options.slackMillis)
	b = le.AppendUint32(b, 0)
	decisions, keys := 0, 0
	for _, c := range x.calls {
		first := keys
		keys += len(c.items)
		if !c.send(now) {
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

// dropConnection is called when a reply was not that of its command: all later
// replies on the same connection would be shifted too. It relies on two habits
// of a client: it closes a connection on which writing fails, and it uses first
// the connection that was returned last.
func (x *exchange) dropConnection() {
	ctx, cancel := context.WithTimeout(context.Background(), x.store.options.timeout)
	defer cancel()
	args := slices.Clone(x.args)
	args[argFirstKey+args[argKeys].(int)] = unwritable{}
	_ = x.store.process(ctx, x.store.client, newCommand(ctx, args))
}

type unwritable struct{}

var errUnwritable = errors.New("the connection is to be closed")

func (unwritable) MarshalBinary() ([]byte, error) { return nil, errUnwritable }

// settle finishes the calls that have run or may have run. It leaves those that have not run and
// may be sent again, with the error that they have until then.
func (x *exchange) settle(cmd exempt, err error) {
	demoted := false
	switch {
	case err == nil:
		if err = x.read(cmd.Val()); err != nil {
			x.fail(badReply(err))
			x.dropConnection()
		}
		for _, c := range x.calls {
			demoted = demoted || redis.HasErrorPrefix(c.err, "READONLY")
		}
	case len(x.calls) > 1 && crossesSlots(err):
		x.store.layout.Store(oneSlot)
		x.separate()
	case len(x.calls) > 1 && (redis.HasErrorPrefix(err, "TRYAGAIN") || redis.HasErrorPrefix(err, "NOPERM")):
		// The keys' slot is moving, and some of the keys are already on the other server; or the
		// user may have no permission for one of the keys.
		x.separate()
	default:
		x.fail(err)
	}
	left := x.calls[:0]
	for _, c := range x.calls {
		again := ranNot(c.err)
		if again {
			c.ranNot()
		}
		if c.err != nil {
			c.err = classify(c.err, c.sent())
		}
		if again {
			left = append(left, c)
		} else {
			c.finish()
		}
	}
	x.calls = left
	if demoted {
		// The server has become a replica. Behind an address of the primary, a new
		// connection finds the new one. A client that gets this error itself closes the
		// connection, too.
		x.dropConnection()
	}
}

// fail notes the error of the command for all calls.
func (x *exchange) fail(err error) {
	for _, c := range x.calls {
		c.err = err
	}
}

// separate sends each call by itself: none has run, and the error may be that of one
// of them.
func (x *exchange) separate() {
	for _, c := range x.calls {
		c.ranNot()
		x.store.lines.alone.Go(c)
	}
	x.calls = x.calls[:0]
}

// giveUp finishes the calls that have no time left at this moment, or all.
func (x *exchange) giveUp(at time.Time, all bool) {
	left := x.calls[:0]
	for _, c := range x.calls {
		if all || c.gone() || c.end.Before(at) {
			c.finish() // its error tells more than a timeout
		} else {
			left = append(left, c)
		}
	}
	x.calls = left
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
// command, read returns an error.
func (x *exchange) read(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%w: a %T", errShape, value)
	}
	whole := len(text)
	cut := func(n int) (part string, ok bool) {
		if n < 0 || n > len(text) {
			return "", false
		}
		part, text = text[:n], text[n:]
		return part, true
	}
	if head, ok := cut(replyHead); !ok || binary.LittleEndian.Uint64([]byte(head)) != x.nonce {
		return fmt.Errorf("%w: it is to another command", errShape)
	}
	for _, c := range x.calls {
		if c.gone() {
			c.err = errWithdrawn
			continue
		}
		c.err = nil
		status, ok := cut(1)
		if !ok {
			return fmt.Errorf("%w: %d bytes for %d decisions", errShape, whole, len(x.calls))
		}
		if status[0] == statusFailed {
			var size, reason string
			if size, ok = cut(4); ok {
				reason, ok = cut(int(binary.LittleEndian.Uint32([]byte(size))))
			}
			c.err = ownError(scriptError(reason))
		} else {
			c.reply = reply{denied: status[0]&bitDenied != 0, unreadable: status[0]&bitUnreadable != 0, ahead: status[0]&bitAhead != 0}
			if ok = status[0]&^(bitUnreadable|bitDenied|bitAhead) == statusMade; ok {
				c.reply.text, ok = cut(c.replySize())
			}
		}
		if !ok {
			return fmt.Errorf("%w: %d bytes for %d decisions", errShape, whole, len(x.calls))
		}
	}
	if text != "" {
		return fmt.Errorf("%w: %d bytes too many", errShape, len(text))
	}
	return nil
}

// replySize is how many bytes of results the reply has for the call.
func (c *call) replySize() (n int) {
	if c.verb > verbGrant {
		return 0
	}
	n = replyTime
	for i := range c.items {
		n += c.items[i].rule.answer
	}
	return n
}

// scriptError is the server's error for one of several decisions.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (scriptError) RedisError() {}

var _ redis.Error = scriptError("")

// The errors of a server that has not run the command. The same server may run
// it soon, or another server may.
var notNow = []string{"MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN ", "LOADING ", "READONLY ", "MASTERDOWN "}

// ranNot reports whether err is a reply which proves that the command did not
// run, and that it may be sent again.
func ranNot(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, prefix := range notNow {
		if strings.HasPrefix(reply.Error(), prefix) {
			return true
		}
	}
	return false
}

// mostRepeats is how often a command is sent again.
const mostRepeats = 4

// pauseBefore returns how long to wait before another attempt, which differs
// between callers.
func pauseBefore(attempt int) time.Duration {
	d := time.Duration(2<<attempt) * time.Millisecond
	return d/2 + rand.N(d)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
