package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// reply is the script's results of a call: see script/main.lua.
type reply struct {
	text       string // the time, and for each item the end of a block and the answers of the limits
	denied     bool   // a limit denies the cost
	unreadable bool   // a stored value could not be read
	ahead      bool   // a stored time was a window or more ahead
}

const (
	replyHead = 8       // that the reply begins with
	replyTime = 8       // of a call, and of the end of a block
	maxTime   = 1 << 53 // no time and no wait is longer
)

// answerSize is how many bytes of the reply a limit takes.
func answerSize(m *meter.Meter) int {
	switch {
	case m.Grows():
		return 32
	case m.Algorithm == meter.Lockout:
		return 22
	default:
		return 15
	}
}

var errShape = errors.New("this is not the reply of the script to this command")

// damaged is the error of a reply to the right command with numbers that are impossible.
func damaged(err error) error {
	return &Error{Unknown: true, Err: fmt.Errorf("%w: %w", core.ErrDamaged, err)}
}

// cursor reads numbers.
type cursor string

// number reads a number of so many bytes, which may be negative.
func (c *cursor) number(bytes int) int64 {
	var b [8]byte
	copy(b[8-bytes:], (*c)[:bytes])
	*c = (*c)[bytes:]
	return int64(binary.LittleEndian.Uint64(b[:])) >> (8 * (8 - bytes))
}

func (c *cursor) count() int64 { return int64(uint32(c.number(4))) }

// fill writes the results of a verb into the items, in order.
func (r reply) fill(verb byte, items []item) error {
	c := cursor(r.text)
	now := c.number(8)
	for i := range items {
		it, of := &items[i], items[i].of
		blocked, cost := c.number(8), it.cost
		if verb == verbGrant {
			cost = 0
		}
		if max(now, -now) > maxTime || blocked < 0 || max(blocked, blocked-now) > maxTime {
			return damaged(fmt.Errorf("at %d, blocked until %d", now, blocked))
		}
		of.At = now
		for j := range of.Results {
			m, unlimited := it.rule.meterOf(of, j)
			result := &of.Results[j]
			at, err := c.result(m, now, cost, !r.denied || unlimited, result)
			if err != nil {
				return err
			}
			of.At = max(of.At, at)
			if blocked > now {
				wait := time.Duration(blocked-now) * time.Microsecond
				result.Remaining, result.ResetAfter, result.MoreAfter = 0, max(result.ResetAfter, wait), max(result.MoreAfter, wait)
				if r.denied && cost > 0 {
					result.Allowed, result.RetryAfter = false, max(result.RetryAfter, wait)
				}
			}
			retry := result.RetryAfter
			if retry == core.Never {
				retry = 0
			}
			if result.Remaining > core.MaxQuota || min(result.MoreAfter, retry) < 0 || result.MoreAfter > result.ResetAfter || max(result.ResetAfter, retry) > maxTime*time.Microsecond {
				return damaged(fmt.Errorf("at %d: %+v", now, *result))
			}
		}
		if of.At > maxTime {
			return damaged(fmt.Errorf("time %d", of.At))
		}
	}
	return nil
}

// result reads the answer of a limit and computes its result for a cost. If allowed is false, it
// decides whether the limit allows the cost. It returns the time of the state.
func (c *cursor) result(m *meter.Meter, now, cost int64, allowed bool, result *core.Result) (at int64, err error) {
	if m.Grows() {
		left, reset, more, retry := c.count(), c.number(7), c.number(7), c.number(7)
		at = c.number(7)
		possible := cost <= m.Capacity && m.Quota > 0
		*result = core.Result{
			Allowed: allowed || cost == 0 || possible && retry == 0, Remaining: left,
			ResetAfter: time.Duration(reset) * time.Microsecond, MoreAfter: time.Duration(more) * time.Microsecond,
		}
		if !result.Allowed {
			result.RetryAfter = core.Never
			if possible {
				result.RetryAfter = time.Duration(retry) * time.Microsecond
			}
		}
		return at, nil
	}
	var room [40]byte
	b := binary.AppendVarint(room[:0], c.number(7))
	b = binary.AppendUvarint(b, uint64(c.count()))
	b = binary.AppendUvarint(b, uint64(c.count()))
	if m.Algorithm == meter.Lockout {
		b = binary.AppendVarint(b, c.number(7))
	}
	r := meter.Reader{Rest: b}
	state := m.ReadState(&r)
	if r.Bad {
		return 0, damaged(fmt.Errorf("state %x", b))
	}
	at, _ = m.Decide((*meter.Result)(result), state, now, cost)
	result.Allowed = result.Allowed || allowed
	m.Report((*meter.Result)(result), state, now, cost)
	return at, nil
}

// reports are log lines of one kind. The zero value is ready for use.
type reports struct {
	mu   sync.Mutex
	next time.Time // no line before this time
	more int       // reports left out since the last line
}

// reportEvery is the shortest time between two lines.
const reportEvery = time.Minute

// log writes a line, or counts it for the next one.
func (r *reports) log(s *Store, text string, args ...any) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.next) {
		r.more++
		return
	}
	log := s.options.log
	if log == nil {
		log = slog.Default()
	}
	log.Warn(text, append(args, "more", r.more)...)
	r.next, r.more = now.Add(reportEvery), 0
}

// report logs what is wrong with the stored values of a reply's items.
func (s *Store) report(r reply, items []item) {
	names, action := make([]string, len(items)), "replace"
	for i := range items {
		names[i] = items[i].name
		if items[i].rule.denies {
			action = "deny"
		}
	}
	if r.unreadable {
		s.unreadable.log(s, "redis: one of these stored values cannot be read", "names", names, "action", action)
	}
	if r.ahead {
		s.clocks.log(s, "redis: a stored time is a window or more ahead: while clocks differ so much, limits do not hold", "names", names,
			"advice", "set the clock of the Redis server and its replicas or, with redisstore.Clock, those of all instances")
	}
}
