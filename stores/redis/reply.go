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
	rest       string // for each item replyItem bytes, and limitSize for each limit
	waits      bool   // each limit says how long the cost has to wait; else none has to
	unreadable bool   // a stored value could not be read
	timeAhead  bool   // a stored time was a window or more ahead
}

const (
	replyHead  = 8
	replyItem  = 8
	replyLimit = 18 // what remains (4), and two times (7 each)
	replyWait  = 7
	maxTime    = 1 << 53
)

// limitSize is how many bytes of the reply a limit takes.
func limitSize(waits bool) int {
	if waits {
		return replyLimit + replyWait
	}
	return replyLimit
}

var errShape = errors.New("not the reply of the script")

// parse checks that the results of a call with these items make sense: text is as
// long as they are. The class of the error is ClassDamaged.
func parse(text string, waits bool, items []namedItem) (reply, error) {
	rest, size := text, limitSize(waits)
	for i := range items {
		if at := number(rest); at < -maxTime || at > maxTime {
			return reply{}, damaged(fmt.Errorf("time %d", at))
		}
		rest = rest[replyItem:]
		for range items[i].Results {
			left, reset, more, retry := numbers(rest, waits)
			if left > core.MaxQuota || reset < 0 || reset > maxTime || more < 0 || more > reset || retry < -1 || retry > maxTime {
				return reply{}, damaged(fmt.Errorf("remaining %d, reset %d, more %d, retry %d", left, reset, more, retry))
			}
			rest = rest[size:]
		}
	}
	return reply{rest: text, waits: waits}, nil
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

// number7 returns a number of seven bytes.
func number7(s string) int64 {
	b := []byte(s[:7])
	n := uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32 | uint64(b[6])<<48
	return int64(n<<8) >> 8
}

// numbers returns the numbers of a limit.
func numbers(s string, waits bool) (left, reset, more, retry int64) {
	if waits {
		retry = number7(s[replyLimit:])
	}
	return int64(binary.LittleEndian.Uint32([]byte(s[:4]))), number7(s[4:]), number7(s[11:]), retry
}

// fill writes the results into the items, in order, and reports whether all
// limits admit.
func (r reply) fill(items []namedItem) bool {
	allowed, rest, size := true, r.rest, limitSize(r.waits)
	for i := range items {
		it := items[i].Item
		it.At = number(rest)
		rest = rest[replyItem:]
		for j := range it.Results {
			left, reset, more, retry := numbers(rest, r.waits)
			rest = rest[size:]
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
