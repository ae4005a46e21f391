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

// A server knows no time zones. The limits of a rule as the script reads them have,
// for each limit of a calendar, the edges of three windows: that of a time near the
// server's, the one before and the one after. If the server's time is in none of
// them, the script changes nothing and replies with its time. The decision is then
// asked for again with the edges around that time.

// textEdges is how many bytes the edges take: the start of the first window in
// microseconds (7), and the lengths of the windows in seconds (4 each).
const textEdges = 7 + 3*4

// edges writes the edges of a rule's limits.
type edges struct {
	places []edgesPlace
	latest atomic.Pointer[edgedText]
}

type edgesPlace struct {
	at      int // where in the text
	nominal int64
	zone    *time.Location
}

// edgedText is a rule's limits with edges that are right for the times from from
// to before to.
type edgedText struct {
	text     any // a string, boxed once
	from, to int64
}

// edgesOf returns the edges of a rule's limits, whose text encodeLimits has
// returned; nil if no limit is of a calendar.
func edgesOf(rule []core.Limit) *edges {
	e, at := new(edges), 0
	for _, limit := range rule {
		l := limits.Of(limit)
		at += 21
		switch l.Algorithm {
		case meter.Lockout:
			at += 16
		case meter.Calendar:
			e.places = append(e.places, edgesPlace{at, l.Window, l.Zone})
			at += textEdges
		}
	}
	if e.places == nil {
		return nil
	}
	return e
}

// textFor returns the limits of a rule for a call that carries a time.
func (r *counterRule) textFor(s *Store, carried int64) any {
	if r.edges == nil {
		return r.limits
	}
	return r.edges.around(r.limits, s.near(carried))
}

// around returns the limits of a rule with the edges around a time.
func (e *edges) around(limits any, now int64) any {
	t := e.latest.Load()
	if t == nil || now < t.from || now >= t.to {
		t = e.write(limits.(string), now)
		e.latest.Store(t)
	}
	return t.text
}

func (e *edges) write(limits string, now int64) *edgedText {
	b, le := []byte(limits), binary.LittleEndian
	t := &edgedText{from: -maxTime, to: maxTime}
	for _, p := range e.places {
		start, end := meter.CivilWindow(p.nominal, p.zone, floorSecond(now))
		before, _ := meter.CivilWindow(p.nominal, p.zone, start-1)
		_, after := meter.CivilWindow(p.nominal, p.zone, end)
		copy(b[p.at:], le.AppendUint64(nil, uint64(before*1_000_000))[:7])
		le.PutUint32(b[p.at+7:], uint32(start-before))
		le.PutUint32(b[p.at+11:], uint32(end-start))
		le.PutUint32(b[p.at+15:], uint32(after-end))
		t.from, t.to = max(t.from, start*1_000_000), min(t.to, end*1_000_000)
	}
	t.text = string(b)
	return t
}

func floorSecond(micros int64) int64 { return time.UnixMicro(micros).Unix() }

// near returns the time around which a call needs edges: the time that it carries,
// or what the server's clock probably shows.
func (s *Store) near(carried int64) int64 {
	if carried != 0 {
		return carried
	}
	return time.Now().UnixMicro() + s.ahead.Load()
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
