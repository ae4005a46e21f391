package redisstore

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// A server knows no time zones. The limits of a rule as the script reads them have, for
// each limit of a calendar, the edges of the window that the server's time is probably in. If
// the script needs another window, it changes nothing and replies with its time. The
// decision is then asked for again with the edges around that time.

// edges writes the edges of a rule's limits.
type edges struct {
	zones  []*time.Location // of each limit; nil: not of a calendar
	length []int64
	latest atomic.Pointer[edgedText]
}

// edgedText is a rule's limits with edges that are right for the times from from
// to before to.
type edgedText struct {
	text     any // a string, boxed once
	from, to int64
}

// edgesOf returns the edges of a rule's limits; nil if no limit is of a calendar.
func edgesOf(rule []core.Limit) *edges {
	e, found := new(edges), false
	for _, limit := range rule {
		l := limits.Of(limit)
		e.zones, e.length = append(e.zones, l.Zone), append(e.length, l.Window)
		found = found || l.Algorithm == meter.Calendar
	}
	if !found {
		return nil
	}
	return e
}

// textFor returns the limits of a rule for a call that carries a time. Without one, the
// server's clock probably shows the process's time and what it was ahead of that.
func (r *counterRule) textFor(s *Store, carried int64) any {
	if r.edges == nil {
		return r.limits
	}
	now := carried
	if now == 0 {
		now = time.Now().UnixMicro() + s.ahead.Load()
	}
	t := r.edges.latest.Load()
	if t == nil || now < t.from || now >= t.to {
		t = r.edges.write(r.limits.(string), now)
		r.edges.latest.Store(t)
	}
	return t.text
}

func (e *edges) write(limits string, now int64) *edgedText {
	b, le := []byte(limits), binary.LittleEndian
	t := &edgedText{from: -maxTime, to: maxTime}
	for i, zone := range e.zones {
		if zone == nil {
			continue
		}
		start, end := meter.CivilWindow(e.length[i], zone, time.UnixMicro(now).Unix())
		start, end = start*1_000_000, end*1_000_000
		numbers := b[textHead+i*textLimit+textNumbers:]
		le.PutUint64(numbers, uint64(start))
		le.PutUint64(numbers[8:], uint64(end))
		t.from, t.to = max(t.from, start), min(t.to, end)
	}
	t.text = string(b)
	return t
}

// mostEdges is how often a decision is asked for with other edges. Each time has
// those of the reply before, so that only a server whose clock jumps, or servers
// whose clocks differ by more than a window, need another.
const mostEdges = 4

// edgesPrefix begins the error of a decision that was not made for want of edges.
// The server's time in microseconds follows.
const edgesPrefix = "FLOODGATE edges "

// learns reports whether a decision was not made for want of the edges of the
// window that the server's time is in, and notes that time.
func (s *Store) learns(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	text, found := strings.CutPrefix(reply.Error(), edgesPrefix)
	now, bad := strconv.ParseInt(text, 10, 64)
	if !found || bad != nil {
		return false
	}
	s.ahead.Store(now - time.Now().UnixMicro())
	return true
}
