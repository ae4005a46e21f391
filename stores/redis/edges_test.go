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

// The edges are those of the window that a time is in. They stay until that window ends.
func TestTheEdgesOfAWindow(t *testing.T) {
	zone := time.FixedZone("here", 5*60*60)
	rule := []core.Limit{core.PerHour(10), core.PerMonth(10).In(zone), core.PerDay(10).In(time.UTC)}
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
		for limit, want := range map[int][2]time.Time{1: {month(row.month), month(row.month + 1)}, 2: {day(row.day), day(row.day + 1)}} {
			for i := range want {
				text := []byte(w.text.(string))[textHead+limit*textLimit+textNumbers+8*i:]
				if got := time.UnixMicro(int64(binary.LittleEndian.Uint64(text))); !got.Equal(want[i]) {
					t.Errorf("%v: edge %d of limit %d is %v, want %v", row.now, i, limit, got.UTC(), want[i])
				}
			}
		}
	}
}

// A call needs the edges around the time that it carries. Without one, that is the server's
// time as far as the store knows it.
func TestTheTimeOfACallsEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, now := New(nil), time.Now().UnixMicro()
		rule := &newCounters(s, "l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerDay(10).In(time.UTC)}}}).rules[0]
		day := func(carried int64) int64 {
			text := []byte(rule.textFor(s, carried).(string))[textHead+textNumbers:]
			return int64(binary.LittleEndian.Uint64(text))
		}
		const length = 24 * 3_600_000_000
		today := now - now%length
		if got := day(0); got != today {
			t.Errorf("the edges of %d, want %d: nothing is known of the server's time", got, today)
		}
		jumped := redis.Error(edgesError(today + 3*length - 500_000))
		if !s.learns(errors.Join(errors.New("denied"), jumped)) {
			t.Error("the server's time is not read")
		}
		if got, want := day(0), today+2*length; got != want {
			t.Errorf("the edges of %d, want %d", got, want)
		}
		time.Sleep(time.Second)
		if got, want := day(0), today+3*length; got != want {
			t.Errorf("the edges of %d, want %d: the server's clock goes on", got, want)
		}
		if got := day(5); got != 0 {
			t.Errorf("the edges of %d, want those of 0, which the call carries", got)
		}
	})
}

// edgesError is the error of a server whose time is in no window of a call.
type edgesError int64

func (e edgesError) Error() string { return edgesPrefix + strconv.FormatInt(int64(e), 10) }
func (edgesError) RedisError()     {}
