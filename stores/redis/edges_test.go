package redisstore

import (
	"encoding/binary"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// readEdges reads what the script reads of a calendar's limit: the beginnings of three
// windows, and the end of the last one.
func readEdges(text string) (bounds [4]time.Time) {
	le := binary.LittleEndian
	start := le.Uint64(append([]byte(text[:7]), 0))
	bounds[0] = time.UnixMicro(int64(start))
	for i := range 3 {
		bounds[i+1] = bounds[i].Add(time.Duration(le.Uint32([]byte(text[7+4*i:]))) * time.Second)
	}
	return bounds
}

// The edges are those of the window that a time is in, of the one before and of the one
// after. They stay until that window ends.
func TestTheEdgesOfThreeWindows(t *testing.T) {
	zone := time.FixedZone("here", 5*60*60)
	rule := []core.Limit{core.PerHour(10), core.PerMonth(10).In(zone), core.PerDay(10).In(time.UTC)}
	const monthAt, dayAt = 2 * textLimit, 3*textLimit + textEdges
	limits := encodeLimits(rule, false)
	e := edgesOf(rule)
	month := func(m time.Month) time.Time { return time.Date(2026, m, 1, 0, 0, 0, 0, zone) }
	day := func(d int) time.Time { return time.Date(2026, 3, d, 0, 0, 0, 0, time.UTC) }
	for _, row := range []struct {
		now      time.Time
		month    time.Month
		day      int
		from, to time.Time
	}{
		{time.Date(2026, 3, 10, 12, 0, 0, 999_999_000, time.UTC), 3, 10, day(10), day(11)},
		{day(10), 3, 10, day(10), day(11)},
		{day(11).Add(-time.Microsecond), 3, 10, day(10), day(11)},
		{day(1), 3, 1, day(1), day(2)},                  // the month has begun before
		{month(3), 3, 0, month(3), day(1)},              // the month begins on the last day of the one before
		{month(4), 4, 31, month(4), day(32)},            // as the next one
		{month(4).Add(-1000), 3, 31, day(31), month(4)}, // and ends then
	} {
		w := e.write(limits, row.now.UnixMicro())
		if !time.UnixMicro(w.from).Equal(row.from) || !time.UnixMicro(w.to).Equal(row.to) {
			t.Errorf("%v: right from %v to %v, want %v to %v", row.now, time.UnixMicro(w.from).UTC(), time.UnixMicro(w.to).UTC(), row.from, row.to)
		}
		text := w.text.(string)
		for i, got := range readEdges(text[monthAt:]) {
			if want := month(row.month - 1 + time.Month(i)); !got.Equal(want) {
				t.Errorf("%v: edge %d of the month is %v, want %v", row.now, i, got.In(zone), want)
			}
		}
		for i, got := range readEdges(text[dayAt:]) {
			if want := day(row.day - 1 + i); !got.Equal(want) {
				t.Errorf("%v: edge %d of the day is %v, want %v", row.now, i, got.UTC(), want)
			}
		}
	}
}

// A call needs the edges around the time that it carries. Without one, that is the server's
// time as far as the store knows it.
func TestTheTimeOfACallsEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, now := New(nil), time.Now().UnixMicro()
		if got := s.near(0); got != now {
			t.Errorf("the edges around %d, want %d: nothing is known of the server's time", got, now)
		}
		jumped := redis.Error(edgesError(now + 90_000_000))
		if !s.learns(errors.Join(errors.New("denied"), jumped)) {
			t.Error("the server's time is not read")
		}
		time.Sleep(time.Second)
		if got, want := s.near(0), now+91_000_000; got != want {
			t.Errorf("the edges around %d, want %d: the server's clock goes on", got, want)
		}
		if got := s.near(5); got != 5 {
			t.Errorf("the edges around %d, want 5, which the call carries", got)
		}
	})
}

// edgesError is the error of a server whose time is in no window of a call.
type edgesError int64

func (e edgesError) Error() string { return edgesPrefix + strconv.FormatInt(int64(e), 10) }
func (edgesError) RedisError()     {}
