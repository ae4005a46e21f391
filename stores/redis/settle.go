package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// settle finishes the calls whose end is known. It leaves those that have not run,
// and may be sent again, with the error that they have until then.
func (x *exchange) settle(cmd exempt, err error) {
	switch {
	case err == nil:
		if err = x.distribute(cmd.Cmd); err == nil {
			return
		}
		err = badReply(err)
		x.dropConnection()
	case len(x.calls) > 1 && redis.HasErrorPrefix(err, "TRYAGAIN"):
		// The keys' slot is moving, and some of the keys are already on the other server.
		x.separate()
		return
	case ranNot(err):
		x.ranNot()
		for _, c := range x.calls {
			c.err = classify(err, c.sent())
		}
		return
	case len(x.calls) > 1 && crossesSlots(err):
		// A server, or a proxy before several, has rejected the command because the
		// keys are not in one place.
		x.store.layout.Store(oneSlot)
		x.separate()
		return
	case len(x.calls) > 1 && redis.HasErrorPrefix(err, "NOPERM"):
		// The user may have no permission for one of the keys.
		x.separate()
		return
	}
	for _, c := range x.calls {
		c.finish(classify(err, c.sent()))
	}
	x.calls = x.calls[:0]
}

// ranNot notes that none of the calls has run.
func (x *exchange) ranNot() {
	for _, c := range x.calls {
		if !x.store.gathers {
			c.ranNot()
		}
	}
}

// giveUp finishes the calls that have no time left at this moment, or all.
func (x *exchange) giveUp(at time.Time, all bool) {
	left := x.calls[:0]
	for _, c := range x.calls {
		if all || c.gone() || c.end.Before(at) {
			c.finish(c.err) // it tells more than a timeout
		} else {
			left = append(left, c)
		}
	}
	x.calls = left
}

// separate sends each call by itself: none has run, and the error may be that of one
// of them.
func (x *exchange) separate() {
	x.ranNot()
	for _, c := range x.calls {
		x.store.lines.alone.Go(c)
	}
	x.calls = x.calls[:0]
}

// The script's statuses of a call: see script/main.lua.
const (
	statusMade    = 0
	statusFailed  = 2
	statusSkipped = 3

	// Bits of the status of a call that was made.
	bitUnreadable = 1
	bitDenied     = 4
	bitAhead      = 8
)

// distribute gives each call its part of the reply. It finishes all calls but those
// that have not run and may be sent again. If this is not the reply of the command,
// it returns an error and has finished none.
func (x *exchange) distribute(cmd *redis.Cmd) error {
	text, ok := cmd.Val().(string)
	if !ok {
		return fmt.Errorf("%w: a %T", errShape, cmd.Val())
	}
	if err := x.split(text); err != nil {
		return err
	}
	left, demoted := x.calls[:0], false
	for _, c := range x.calls {
		err := c.err
		demoted = demoted || err != nil && redis.HasErrorPrefix(err, "READONLY")
		if err == nil {
			c.finish(nil)
		} else if ranNot(err) {
			if !x.store.gathers {
				c.ranNot()
			}
			c.err = classify(err, c.sent())
			left = append(left, c)
		} else {
			c.finish(classify(err, c.sent()))
		}
	}
	x.calls = left
	if demoted {
		// The server has become a replica. Behind an address of the primary, a new
		// connection finds the new one. A client that gets this error itself closes the
		// connection, too.
		x.dropConnection()
	}
	return nil
}

// split cuts the reply into those of the calls: reply and err of each.
// A server, a proxy or a connection whose replies are out of step may send anything.
func (x *exchange) split(text string) error {
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
		status, ok := cut(1)
		if !ok || (status[0] == statusSkipped) != c.gone() {
			return fmt.Errorf("%w: %d bytes for %d decisions", errShape, whole, len(x.calls))
		}
		c.err = nil
		switch status[0] {
		case statusFailed:
			var size, reason string
			if size, ok = cut(4); ok {
				reason, ok = cut(int(binary.LittleEndian.Uint32([]byte(size))))
			}
			c.err = ownError(scriptError(reason))
		case statusSkipped:
			c.err = errWithdrawn
		default:
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
	if c.verb > verbBack {
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
