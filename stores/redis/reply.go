package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// reply is the script's reply, checked for its shape.
type reply struct {
	rest       string // for each item replyItem bytes, and replyLimit for each limit
	unreadable bool   // a stored value could not be read
}

const (
	replyHead  = 8
	replyItem  = 8
	replyLimit = 32
	maxTime    = 1 << 53
)

var errShape = errors.New("not the reply of the script")

// parse checks that the reply is that of the command with this nonce, and has
// results for these items. A server, a proxy or a connection whose replies are
// out of step may send anything. If the reply is to another command, the class
// of the error is ClassBadReply; if only its numbers make no sense,
// ClassDamaged.
func parse(cmd *redis.Cmd, nonce uint64, items []namedItem) (reply, error) {
	text, ok := cmd.Val().(string)
	if !ok {
		return reply{}, badReply(fmt.Errorf("%w: a %T", errShape, cmd.Val()))
	}
	return parseText(text, nonce, items)
}

func parseText(text string, nonce uint64, items []namedItem) (reply, error) {
	want := replyHead
	for i := range items {
		want += replyItem + replyLimit*len(items[i].Results)
	}
	if len(text) != want && (len(text) != want+1 || text[want] != 1) {
		return reply{}, badReply(fmt.Errorf("%w: %d bytes, want %d", errShape, len(text), want))
	}
	if number(text) != int64(nonce) {
		return reply{}, badReply(fmt.Errorf("%w: it is to another command", errShape))
	}
	r := reply{rest: text[replyHead:want], unreadable: len(text) > want}
	rest := r.rest
	for i := range items {
		if at := number(rest); at < -maxTime || at > maxTime {
			return reply{}, damaged(fmt.Errorf("time %d", at))
		}
		rest = rest[replyItem:]
		for range items[i].Results {
			left, reset, more, retry := numbers(rest)
			if left < 0 || left > core.MaxQuota || reset < 0 || reset > maxTime || more < 0 || more > reset || retry < -1 || retry > maxTime {
				return reply{}, damaged(fmt.Errorf("remaining %d, reset %d, more %d, retry %d", left, reset, more, retry))
			}
			rest = rest[replyLimit:]
		}
	}
	return r, nil
}

func badReply(err error) error { return &Error{Class: ClassBadReply, Unknown: true, Err: err} }

// damaged is the error of a reply to the right command with numbers that no
// readable value leads to.
func damaged(err error) error {
	return &Error{Class: ClassDamaged, Unknown: true, Err: fmt.Errorf("%w: %w", core.ErrDamaged, err)}
}

func number(s string) int64 {
	return int64(binary.LittleEndian.Uint64([]byte(s[:8])))
}

func numbers(s string) (left, reset, more, retry int64) {
	return number(s), number(s[8:]), number(s[16:]), number(s[24:])
}

// fill writes the results into the items, in order, and reports whether all
// limits admit.
func (r reply) fill(items []namedItem) bool {
	allowed, rest := true, r.rest
	for i := range items {
		it := items[i].Item
		it.At = number(rest)
		rest = rest[replyItem:]
		for j := range it.Results {
			left, reset, more, retry := numbers(rest)
			rest = rest[replyLimit:]
			it.Results[j] = core.Result{
				Allowed:    retry == 0,
				Remaining:  left,
				ResetAfter: time.Duration(reset) * time.Microsecond,
				MoreAfter:  time.Duration(more) * time.Microsecond,
				RetryAfter: time.Duration(retry) * time.Microsecond,
			}
			if retry < 0 {
				it.Results[j].RetryAfter = core.Never
			}
			allowed = allowed && retry == 0
		}
	}
	return allowed
}
