package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

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

// parse checks that the results of a call with these items make sense: text is as
// long as they are. The class of the error is ClassDamaged.
func parse(text string, items []namedItem) (reply, error) {
	r := reply{rest: text}
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
