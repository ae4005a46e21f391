package redisstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// head is the beginning of the reply to one decision with the nonce.
func head(nonce uint64) string { return headOf(nonce, bitDenied, 1_764_000_123_456_789) }

func headOf(nonce uint64, status byte, at int64) string {
	b := append(binary.LittleEndian.AppendUint64(nil, nonce), status)
	return string(binary.LittleEndian.AppendUint64(b, uint64(at)))
}

// sentExchange is an exchange with a take from one key for each number, which is that of its limits.
func sentExchange(t testing.TB, nonce uint64, limits ...int) *exchange {
	s := New(nowhere(t))
	x := &exchange{store: s}
	for _, n := range limits {
		c := s.newCall(operation{t.Context(), time.Now().Add(time.Hour)}, verbTake, oneItem(t, n))
		c.markSent()
		x.calls = append(x.calls, c)
	}
	x.arm(t.Context(), false)
	x.nonce = nonce
	return x
}

// nowhere is a client of no server.
func nowhere(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// itemReply is the part of a reply that is an item's, with a log that has so many hits left.
func itemReply(left uint32, times ...int64) string {
	return strings.Repeat("\x00", 8) + string(appendTimes(binary.LittleEndian.AppendUint32(nil, left), times...))
}

func appendTimes(b []byte, times ...int64) []byte {
	for _, n := range times {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
		b = b[:len(b)-1]
	}
	return b
}

// cellReply is as itemReply, with a state of a time and two numbers.
func cellReply(at int64, numbers ...uint32) string {
	b := appendTimes(make([]byte, 8), at) // after a block
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return string(b)
}

// Whatever comes, it is a reply or an error.
func TestWeirdRepliesAreErrors(t *testing.T) {
	for what, val := range map[string]any{
		"nil": nil, "number": int64(5), "array": []any{int64(1)}, "map": map[any]any{"a": "b"}, "text": "5", "empty": "",
		"too short": head(7), "too long": head(7) + itemReply(1, 2, 1, 0, 0) + "x",
		"an unknown status": headOf(7, 16, 1) + itemReply(1, 2, 1, 0, 0), "another's": head(8) + itemReply(1, 2, 1, 0, 0),
	} {
		cmd := redis.NewCmd(t.Context())
		cmd.SetVal(val)
		var e *Error
		x := sentExchange(t, 7, 1)
		c := x.calls[0]
		x.settle(t.Context(), exempt{cmd}, nil, 1)
		if err := c.err; !errors.As(err, &e) || !errors.Is(err, errShape) || err.Error() != "redis: the command may have run: "+errShape.Error() || !e.Unknown || len(c.done) != 1 {
			t.Errorf("%s: error %v, want %v", what, err, errShape)
		}
	}
	const now = 1_764_000_123_456_789
	for what, val := range map[string]string{
		"huge remaining": head(7) + itemReply(1<<31, 2, 1, 0, now),
		"negative reset": head(7) + itemReply(1, -2, 0, 0, now), "huge reset": head(7) + itemReply(1, 1<<54, 1, 0, now), "odd retry": head(7) + itemReply(1, 2, 1, -2, now),
		"negative more": head(7) + itemReply(1, 2, -1, 0, now), "more after all": head(7) + itemReply(1, 2, 3, 0, now),
		"impossible time": headOf(7, bitDenied, 1<<60) + itemReply(1, 2, 1, 0, now), "impossible wait": head(7) + itemReply(1, 2, 1, 1<<54, now),
		"impossible time of a hit": head(7) + itemReply(1, 2, 1, 0, 1<<54),
	} {
		var e *Error
		if _, err := filled(oneItem(t, 1), bitDenied, val[replyHead+1:]); !errors.As(err, &e) || !errors.Is(err, core.ErrDamaged) {
			t.Errorf("%s: error %v, want %v", what, err, core.ErrDamaged)
		}
	}
	s := New(answering(t, func(_ context.Context, cmd redis.Cmder) error {
		cmd.(exempt).SetVal(string(inputOf(t, cmd)[:replyHead]) + head(7)[replyHead:] + itemReply(1<<31, 2, 1, 0, now))
		return nil
	}), Timeout(time.Hour))
	if _, err := s.ask(s.begin(t.Context()), verbTake, oneItem(t, 1)); !errors.Is(err, core.ErrDamaged) {
		t.Errorf("a reply with a number that is too high: %v", err)
	}
	for what, c := range map[string]struct {
		limit core.Limit
		state string
	}{
		"too many hits":         {core.PerHour(10), cellReply(now, 1<<31, 0)},
		"too many hits before":  {core.PerHour(10), cellReply(now, 0, 1<<31)},
		"too large a remainder": {core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket}, cellReply(now+5, 10, 10)},
	} {
		if _, err := filled(itemOf(t, c.limit), 0, head(7)[replyHead+1:]+c.state); !errors.Is(err, core.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// filled returns what a reply with this status fills in.
func filled(items []item, status byte, text string) (*core.Item, error) {
	err := reply{text: text, denied: status&bitDenied != 0}.fill(verbTake, items)
	return items[0].of, err
}

// oneItem is an item of a rule with so many limits, one or more for each form of a state.
func oneItem(t testing.TB, limits int) []item {
	some := []core.Limit{
		{Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog}, core.PerHour(10),
		{Quota: 9, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 6},
		{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Max: time.Hour, Factor: 2, Decay: time.Hour}},
		{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow},
	}
	return itemOf(t, slices.Repeat(some, 2)[:limits]...)
}

func itemOf(t testing.TB, limits ...core.Limit) []item {
	rule := &newCounters(New(nowhere(t)), "l", []core.StoreRule{{Name: "r", Limits: limits}}).rules[0]
	return []item{itemFor(&core.Item{Cost: 1, Results: make([]core.Result, len(limits))}, rule, "k")}
}

func FuzzRedisReply(f *testing.F) {
	const now = 1_764_000_123_456_789
	log := itemReply(1, 2, 1, 0, now)
	f.Add(head(7)+log, 1, -1)
	f.Add(head(7)+log+"\x00"+head(7)[9:]+log[:8], 1, 0)
	f.Add(head(7)[:8]+"\x02\x03\x00\x00\x00ERR"+head(7)[8:]+log, 1, 1)
	f.Add(headOf(7, statusMade, now)+log+cellReply(now, 5, 6)[8:]+cellReply(now, 5, 6)[8:], 3, -1)
	f.Add(headOf(7, bitUnreadable|bitDenied, now)+log, 1, -1)
	f.Add(head(7), 0, -1)
	f.Add("", 2, 1)
	f.Add("\a\x00\x00\x00\x00\x00\x00\x00\x04\x15\r\xbeHYD\x05\xff\xff\xf1\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x15\r\xbeHYD\x06", 1, -1) // blocked for longer than a time.Duration can say
	f.Fuzz(func(t *testing.T, text string, limits, more int) {
		limits = min(max(limits, 0), 8)
		of := []int{limits}
		if more >= 0 {
			of = append(of, min(more, 8))
		}
		x := sentExchange(t, 7, of...)
		all := slices.Clone(x.calls)
		if !x.read(text) {
			return
		}
		for i, c := range all {
			if c.err != nil {
				continue
			}
			items := oneItem(t, of[i])
			if err := c.reply.fill(verbTake, items); err != nil {
				continue
			}
			for _, res := range items[0].of.Results {
				if res.Remaining < 0 || res.Remaining > core.MaxQuota || res.ResetAfter < 0 || res.RetryAfter < 0 || res.Allowed != (res.RetryAfter == 0) {
					t.Errorf("result %+v", res)
				}
			}
		}
	})
}

// An error reply proves that nothing was charged if a server says it that refuses
// before it writes. A proxy says others when it has passed the command on.
func TestWhichRepliesProveThatNothingWasCharged(t *testing.T) {
	for reply, want := range map[string]bool{
		"OOM command not allowed": true, "READONLY You can't": true, "NOPERM this user": true, "NOAUTH Authentication": true,
		"ERR The user executing the script can't run": true, "ERR ACL failure in script": true, "MISCONF Redis is": true, "NOREPLICAS Not": true,
		"LOADING Redis is": true, "CROSSSLOT Keys": true, "BUSY Redis is busy": true, "ERR max number of clients reached": true, "ERR unknown command 'evalsha'": true, "NOSCRIPT No": true,
		"FLOODGATE calendar: the clocks": true, "FLOODGATE some of several keys have been written: FLOODGATE calendar: ": false,
		"FLOODGATE some of several keys have been written: OOM": false, "upstream failure": false, "ERR Connection timed out": false, "": false,
	} {
		err := classify(scriptError(reply), true)
		if got := errors.Is(err, core.ErrNotCharged); got != want {
			t.Errorf("%q proves that nothing was charged: %v, want %v", reply, got, want)
		}
		if text := map[bool]string{true: "redis: ", false: "redis: the command may have run: "}[want] + reply; err.Error() != text {
			t.Errorf("%q, want %q", err, text)
		}
		if err := afterOthers(fmt.Errorf("wrapped: %w", err)); errors.Is(err, core.ErrNotCharged) {
			t.Errorf("%v: says that nothing was charged, and other keys were", err)
		}
	}
}

// Lines of each kind are logged once a minute, with how many reports were left out since.
func TestReportsOfAMinuteAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := New(nowhere(t), Log(slog.New(slog.NewTextHandler(&out, nil))))
		report := func() {
			s.report(reply{unreadable: true, ahead: true}, items(t, s, "k"))
			defer s.recovered(new(error))
			panic("of a hook")
		}
		for _, want := range []string{"more=0", "more=3", "more=0"} {
			out.Reset()
			report()
			if got := out.String(); strings.Count(got, "\n") != 3 || strings.Count(got, want) != 3 ||
				!strings.Contains(got, "read\" names=[k] action=replace "+want) {
				t.Errorf("logged %q, want %s", got, want)
			}
			for range map[string]int{"more=0": 3}[want] { // left out
				out.Reset()
				if report(); out.Len() > 0 {
					t.Errorf("logged again: %s", &out)
				}
			}
			time.Sleep(time.Minute)
		}
	})
}
