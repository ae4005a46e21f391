package redisstore_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// The format of a month's state; a state that none can have written denies its key.
func TestStoredValuesOfACalendar(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	f := newFormatted(t, redistest.Start(t), core.PerMonth(10).In(berlin))
	f.take()
	value := f.value()
	const golden = "AiMAAAD8d9LXRAYMAKAUnW8CCvPh3EgQALw6U3xCBgEAAAAAjScA"
	if got := base64.StdEncoding.EncodeToString(value); got != golden {
		t.Errorf("stored %s, want %s", got, golden)
	}
	const length = 1 + 23 + 7 + 4 // the place of the window's length
	for _, row := range []struct {
		seconds [4]byte
		denied  bool
	}{
		{[4]byte{0x00, 0x8d, 0x27, 0x00}, false}, // 30 days
		{[4]byte{0, 0, 0, 0}, true},              // none
		{[4]byte{0x30, 0x5a, 0x2a, 0x00}, false}, // 32 days and 3 hours
		{[4]byte{0x31, 0x5a, 0x2a, 0x00}, true},  // and a second
		{[4]byte{0xff, 0xff, 0xff, 0xff}, true},  // 136 years
	} {
		changed := append([]byte(nil), value...)
		copy(changed[length:], row.seconds[:])
		f.set(changed)
		if b := f.take(); b.Allowed == row.denied {
			t.Errorf("%x: %v", row.seconds, b.Items[0].Results)
		}
	}
}

// A charge at a time that is not in the window that the script is told is an error if it
// needs a window. A window begins with its edge, and ends before the next.
func TestATimeOutsideTheWindowOfACall(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	script := redis.NewScript(redisstore.ScriptText())
	edge := func(month time.Month) int64 { return time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC).UnixMicro() }
	for now, want := range map[int64]string{
		edge(3) - 1: "FLOODGATE edges",
		edge(3):     "",
		edge(4) - 1: "",
		edge(4):     "FLOODGATE edges",
	} {
		for _, peek := range []bool{true, false} {
			args := redisstore.Ask(peek, edge(3)+1, []core.Limit{core.PerMonth(10)}, false, 1)
			const place = 8 + 4 + 4 + 1 + 4 + 4 // of the time
			input := []byte(args[0].(string))
			binary.LittleEndian.PutUint64(input[place:], uint64(now))
			args[0] = string(input)
			reply, err := script.Run(t.Context(), client, []string{fmt.Sprint("k", now)}, args...).Text()
			if err != nil {
				t.Fatal(err)
			}
			if fails := want != "" && !peek; (reply[8] == 2) != fails || fails && !strings.Contains(reply, want) {
				t.Errorf("at %d: %q, want the error %q", now, reply, want)
			}
		}
	}
}

// A month that a clock has written at its beginning or later is believed until the
// beginning of the month before. There only a step of the clock explains it, and the
// hits are those of this month.
func TestAMonthAheadOfTheClock(t *testing.T) {
	server := redistest.Start(t)
	april, may, june := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for now, ends := range map[time.Time]time.Time{april: may, april.Add(time.Microsecond): june} {
		f := newFormatted(t, server, core.PerMonth(1))
		server.MustDo("DEL", stored(t, "k"))
		f.clock.Set(may)
		f.take()
		f.clock.Set(now)
		if r := f.take().Items[0].Results[0]; r.RetryAfter != ends.Sub(now) {
			t.Errorf("at %v: %+v, want %v to wait", now, r, ends.Sub(now))
		}
	}
}

// A refund gives back hits of its month, from the first microsecond to the last.
func TestARefundOfAMonth(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.PerMonth(10))
	april, may := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	f.clock.Set(april.Add(time.Hour))
	batch := one("k", 8, 1)
	if err := storetest.Do(t.Context(), f.bound, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		at   time.Time
		left int64
	}{{april.Add(-time.Microsecond), 2}, {april, 3}, {may.Add(-time.Microsecond), 4}, {may, 4}} {
		refund := one("k", 1, 1)
		refund.Items[0].At = row.at.UnixMicro()
		if err := storetest.Do(t.Context(), f.bound, core.OpRefund, refund); err != nil {
			t.Fatal(err)
		}
		look := one("k", 0, 1)
		if err := storetest.Do(t.Context(), f.bound, core.OpTake, look); err != nil {
			t.Fatal(err)
		}
		if got := look.Items[0].Results[0].Remaining; got != row.left {
			t.Errorf("after a refund of %v: %d left, want %d", row.at, got, row.left)
		}
	}
}
