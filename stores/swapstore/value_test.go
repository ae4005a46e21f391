package swapstore

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // so that every system has the zones

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

const codecNow = 1_764_000_123_456_789

// codecRule is a rule with a limit of every algorithm.
func codecRule(window time.Duration) (limits []limit) {
	all := []core.Limit{
		{Quota: 5, Window: window},
		{Quota: 5, Window: window, Algorithm: core.FixedWindow, Aligned: true},
		{Quota: 5, Window: window, Algorithm: core.TokenBucket, Burst: 9},
		{Quota: 5, Window: window, Algorithm: core.BucketedWindow, Precision: window / 60},
		{Quota: 5, Window: window, Algorithm: core.SlidingLog},
		{Quota: 5, Window: window, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}},
	}
	for _, l := range all {
		limits = append(limits, newLimit(l))
	}
	return limits
}

// appendRecord appends a record with this body, which begins with its kind.
func appendRecord(dst []byte, expiry int64, body []byte) []byte {
	end := binary.AppendVarint(nil, expiry)
	dst = binary.AppendUvarint(dst, uint64(len(end)+len(body)))
	return append(append(dst, end...), body...)
}

// denied appends a record that denies the key.
func denied(dst []byte, now, length int64) []byte {
	r := denialOf(now, length)
	return appendRecord(dst, r.expiry, r.body)
}

// chargedValue is the value of a key of such a rule with so many hits.
func chargedValue(window time.Duration, old []byte, now, hits int64) []byte {
	limits := codecRule(window)
	v := decode(old, limits, now)
	for i := range limits {
		m := &limits[i]
		var r meter.Result
		m.Decide(&r, v.states[i], now, hits)
		v.states[i] = m.Room(v.states[i], hits)
		m.Charge(&r, v.states[i], now, hits)
	}
	value, _ := v.encode(limits, now)
	return value
}

func usedOf(window time.Duration, value []byte, now int64) (used []int64, is readability) {
	limits := codecRule(window)
	v := decode(value, limits, now)
	for i := range limits {
		m := &limits[i]
		var r meter.Result
		m.Decide(&r, v.states[i], now, 0)
		used = append(used, m.Capacity-r.Remaining)
	}
	return used, v.is
}

// The format changes only with the version byte.
func TestStoredValueFormat(t *testing.T) {
	const golden = "Ahmq1Kre3paiBgCAyM60DQCqtPCLqZaiBgIAGYCQr//ClqIGA4DIzrQNAICAkpaolqIGAgAZrNSV6bOWogYIgMjOtA0AqtSV6bOWogYABRiA5IOrxJaiBgSAyM60DYCOzhyE74QcAQIZqsSN9cOWogYGgMjOtA0AAqq08IuplqIGABqqxI31w5aiBgqAyM60DQCqtPCLqZaiBgIAAA=="
	got := base64.StdEncoding.EncodeToString(chargedValue(time.Hour, nil, codecNow, 2))
	if got != golden {
		t.Errorf("stored %s, want %s", got, golden)
	}
}

func TestAWriteKeepsTheStatesOfOtherLimits(t *testing.T) {
	value := chargedValue(time.Hour, nil, codecNow, 2)
	value = chargedValue(2*time.Hour, value, codecNow, 3)
	value = chargedValue(time.Hour, value, codecNow, 1)
	for window, want := range map[time.Duration]string{time.Hour: "[3 3 3 3 3 3]", 2 * time.Hour: "[3 3 3 3 3 3]", 3 * time.Hour: "[0 0 0 0 0 0]"} {
		if used, is := usedOf(window, value, codecNow); fmt.Sprint(used) != want || is != readable {
			t.Errorf("limits of %v have used %v, want %v", window, used, want)
		}
	}
	// When they have expired, a write drops them, a minute later.
	later := codecNow + 10*time.Hour.Microseconds()
	value = chargedValue(time.Hour, value, later, 1)
	if alone := chargedValue(time.Hour, nil, later, 1); !bytes.Equal(value, alone) {
		t.Errorf("%d bytes are kept of states that have expired, want %d", len(value), len(alone))
	}
}

func TestValuesThatCannotBeRead(t *testing.T) {
	value := chargedValue(time.Hour, nil, codecNow, 1)
	for name, c := range map[string]struct {
		value []byte
		want  readability
	}{
		"nothing":           {[]byte{}, unreadable},
		"text":              {[]byte("abc"), unreadable},
		"a number":          {[]byte("5 "), unreadable},
		"the first version": {append([]byte{1}, value[1:]...), unreadable},
		"a later version":   {append([]byte{3}, value[1:]...), newer},
		"the newest later":  {append([]byte{15}, value[1:]...), newer},
		"no later version":  {append([]byte{16}, value[1:]...), unreadable},
		"cut":               {value[:len(value)-1], unreadable},
		"longer":            {append(append([]byte{}, value...), 0), unreadable},
		"a huge record":     {append(append([]byte{}, value...), 0xff, 0xff, 0xff, 0xff, 0x7f), unreadable},
		"a longer denial":   {appendRecord([]byte{stateVersion}, codecNow+1, []byte{kindDenial, 1, 0}), unreadable},
		"no state":          {appendRecord([]byte{stateVersion}, codecNow+1, codecRule(time.Hour)[0].id), unreadable},
		"the longest":       {appendRecord([]byte{stateVersion}, codecNow+1, append([]byte{44}, make([]byte, 4<<20-14)...)), readable},
		"too long":          {appendRecord([]byte{stateVersion}, codecNow+1, append([]byte{44}, make([]byte, 4<<20-13)...)), unreadable},
		"a denial too long": {appendRecord([]byte{stateVersion}, codecNow+1, binary.AppendUvarint([]byte{kindDenial}, uint64(core.MaxWindow.Microseconds())+1)), unreadable},
		"as it was":         {value, readable},
	} {
		used, is := usedOf(time.Hour, c.value, codecNow)
		if is != c.want || c.want != readable && used[0] != 0 {
			t.Errorf("%s: %v, used %v, want %v", name, is, used, c.want)
		}
	}
}

// A denial states how long it is. If its end is twice as far ahead or more, the clock has been set
// back. Of several denials, the one that ends last holds.
func TestDenials(t *testing.T) {
	limits := codecRule(time.Hour)
	const length = 60_000_000
	short, long := denied(nil, codecNow, length/2), denied(nil, codecNow, length)
	if got := fmt.Sprintf("%x", long); got != "0daad08cc5a996a2067e808ece1c" {
		t.Errorf("a denial is stored as %s", got)
	}
	for _, records := range [][]byte{long, slices.Concat(short, long), slices.Concat(long, short)} {
		for ahead, denies := range map[int64]bool{0: false, 1: true, length: true, 2*length - 1: true, 2 * length: false, 3*length - 1: false} {
			now := codecNow + length - ahead
			v := decode(append([]byte{stateVersion}, records...), limits, now)
			if (v.denial.expiry > now) != denies || denies && v.denial.expiry != codecNow+length || v.is != readable {
				t.Errorf("%x, whose end is %d µs ahead: denies %v, want %v", records, ahead, !denies, denies)
			}
		}
	}
}

// A write keeps 32 records of others, of whatever kind, in their order: the program that wrote one may
// have a clock that is a minute late. The value lives as long as the last of them.
func TestWhichRecordsOfOthersAreKept(t *testing.T) {
	limits := codecRule(time.Hour)
	minute := time.Minute.Microseconds()
	value := []byte{stateVersion}
	var want []byte
	for i := range int64(40) {
		end := codecNow + i - 3 - minute
		value = appendRecord(value, end, append([]byte{44}, "whatever"...))
		if i > 3 && i < 3+1+32 {
			want = appendRecord(want, end, append([]byte{44}, "whatever"...))
		}
	}
	v := decode(value, limits, codecNow)
	if got, _ := v.encode(limits, codecNow); !bytes.Equal(got[1:], want) {
		t.Errorf("kept\n%x, want\n%x", got[1:], want)
	}
	limits[1].Charge(new(meter.Result), v.states[1], codecNow, 1)
	own := limits[1].Expiry(v.states[1])
	for at, written := range map[int64]bool{own - 1: true, own: false} {
		if got, expiry := v.encode(limits, at); (len(got) > 1+len(want)) != written || expiry != own {
			t.Errorf("a state that expires at %d: at %d %x is written, until %d", own, at, got, expiry)
		}
	}
}

// body writes the fields of a state: an int64 as a signed number, a uint64 as an unsigned one.
func body(dst []byte, fields ...any) []byte {
	for _, f := range fields {
		switch f := f.(type) {
		case int64:
			dst = binary.AppendVarint(dst, f)
		case uint64:
			dst = binary.AppendUvarint(dst, f)
		}
	}
	return dst
}

// A stored number at the end of its range is read, and the next one is not: no
// value makes the arithmetic overflow.
func TestTheBoundsOfStoredNumbers(t *testing.T) {
	const (
		sliding, fixed, token, bucketed, log, lockout = 0, 1, 2, 3, 4, 5
		now                                           = int64(codecNow)
		latest, earliest                              = int64(math.MaxInt64 / 1000), int64(math.MinInt64 / 1000)
		quota                                         = uint64(core.MaxQuota)
		maxStrikes                                    = 64
	)
	limits := codecRule(time.Hour)
	buckets := uint64(limits[bucketed].Buckets) + 1
	precision := limits[bucketed].Window / limits[bucketed].Buckets
	counts := func(n uint64, of ...uint64) []any {
		fields := []any{now / precision, n}
		for i := range n {
			fields = append(fields, of[min(i, uint64(len(of))-1)])
		}
		return fields
	}
	for name, c := range map[string]struct {
		limit       int
		good, wrong []any
	}{
		"hits of a sliding window":            {sliding, []any{now, quota, quota}, []any{now, quota + 1, uint64(0)}},
		"hits of the window before":           {sliding, []any{now, uint64(0), quota}, []any{now, uint64(0), quota + 1}},
		"hits of a fixed window":              {fixed, []any{now, quota, uint64(0)}, []any{now, quota + 1, uint64(0)}},
		"a number of 32 bits":                 {fixed, []any{now, quota, uint64(0)}, []any{now, uint64(1 << 32), uint64(0)}},
		"the latest time":                     {fixed, []any{latest, uint64(1), uint64(0)}, []any{latest + 1, uint64(1), uint64(0)}},
		"the earliest time":                   {fixed, []any{earliest, uint64(1), uint64(0)}, []any{earliest - 1, uint64(1), uint64(0)}},
		"the fraction of a token bucket":      {token, []any{now, uint64(4), uint64(5)}, []any{now, uint64(5), uint64(5)}},
		"the quota of a token bucket":         {token, []any{now, uint64(4), quota}, []any{now, uint64(4), quota + 1}},
		"a quota of 0":                        {token, []any{now, uint64(0), uint64(1)}, []any{now, uint64(0), uint64(0)}},
		"the number of buckets":               {bucketed, counts(buckets, 1), counts(buckets+1, 1)},
		"the hits of a bucket":                {bucketed, counts(1, quota), counts(1, quota+1)},
		"the hits of two buckets":             {bucketed, counts(2, quota-1, 1), counts(2, quota, 1)},
		"the newest bucket":                   {bucketed, []any{latest / precision, uint64(1), uint64(1)}, []any{latest + 1, uint64(1), uint64(1)}},
		"the number of hits in a log":         {log, []any{uint64(2), now, uint64(1)}, []any{uint64(3), now, uint64(1)}},
		"the time of the first hit":           {log, []any{uint64(1), latest}, []any{uint64(1), latest + 1}},
		"the time of a later hit":             {log, []any{uint64(2), latest - 1, uint64(1)}, []any{uint64(2), latest, uint64(1)}},
		"the time between two hits of a log":  {log, []any{uint64(2), int64(0), uint64(latest)}, []any{uint64(2), int64(-1), uint64(latest) + 1}},
		"the hits of a window with a lockout": {lockout, []any{now, quota, uint64(1), now}, []any{now, quota + 1, uint64(1), now}},
		"the strikes of a lockout":            {lockout, []any{now, uint64(1), uint64(maxStrikes), now}, []any{now, uint64(1), uint64(maxStrikes + 1), now}},
		"the end of a wait":                   {lockout, []any{now, uint64(1), uint64(1), latest}, []any{now, uint64(1), uint64(1), latest + 1}},
		"the end of a state":                  {fixed, []any{now, uint64(1), uint64(0)}, []any{now, uint64(1), uint64(0), uint64(0)}},
	} {
		for _, fields := range [][]any{c.good, c.wrong} {
			want := readable
			if &fields[0] == &c.wrong[0] {
				want = unreadable
			}
			value := append([]byte{stateVersion}, appendRecord(nil, now+1e9, body(limits[c.limit].id, fields...))...)
			v := decode(value, limits, now)
			if v.is != want {
				t.Errorf("%s: %v: read as %v, want %v", name, fields, v.is, want)
			}
			read := slices.ContainsFunc(v.states, func(w []uint64) bool {
				return slices.ContainsFunc(w, func(word uint64) bool { return word != 0 })
			})
			if want == unreadable && read {
				t.Errorf("%s: %v: a part was read", name, fields)
			}
		}
	}
}

// FuzzStoredState decodes any bytes: without a panic, to states that the
// arithmetic can work with, and to a value that decodes and encodes to itself.
func FuzzStoredState(f *testing.F) {
	limits := codecRule(time.Hour)
	value := chargedValue(time.Hour, nil, codecNow, 3)
	f.Add(value)
	f.Add(value[:len(value)/2])
	f.Add(chargedValue(time.Minute, value, codecNow, 2))
	f.Add(denied([]byte{stateVersion}, codecNow, 1e6))
	f.Add([]byte("5 "))
	f.Fuzz(func(t *testing.T, value []byte) {
		v := decode(value, limits, codecNow)
		for i := range limits {
			m := &limits[i]
			var r meter.Result
			m.Decide(&r, v.states[i], codecNow, 1)
			m.Report(&r, v.states[i], codecNow, 1)
			if r.Remaining < 0 || r.Remaining > m.Capacity || r.RetryAfter < 0 || r.RetryAfter > meter.Duration(5*m.Window) {
				t.Errorf("%v: %+v", limits[i].id, r)
			}
			v.states[i] = m.Room(v.states[i], 1)
			if r.Allowed {
				m.Charge(&r, v.states[i], codecNow, 1)
			}
		}
		again, expiry := v.encode(limits, codecNow)
		if expiry < codecNow {
			t.Errorf("expires at %d", expiry)
		}
		back := decode(again, limits, codecNow)
		if b, _ := back.encode(limits, codecNow); !bytes.Equal(b, again) {
			t.Errorf("%x decodes and encodes to %x", again, b)
		}
	})
}

// The format of a month's state changes only with the version byte. Another zone's
// is kept beside it.
func TestStoredValueOfACalendar(t *testing.T) {
	var value []byte
	for _, zone := range []string{"Europe/Berlin", "Asia/Kathmandu"} {
		z, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		limits := []limit{newLimit(core.PerMonth(10).In(z))}
		v := decode(value, limits, codecNow)
		var r meter.Result
		if limits[0].Decide(&r, v.states[0], codecNow, 2); value != nil && v.is != readable || r.Remaining != 10 {
			t.Fatalf("%s: %+v", zone, v)
		}
		limits[0].Charge(&r, v.states[0], codecNow, 2)
		value, _ = v.encode(limits, codecNow)
	}
	const golden = "AiOAxNXz+rSiBgyAwNLo+U3z7OPI77cagMTr/4qeoQYCgJqeASOA8L+n+rWiBgyAwNLo+U2K5ofnjYkEgPDVs4qfoQYCgJqeAQ=="
	if got := base64.StdEncoding.EncodeToString(value); got != golden {
		t.Errorf("stored %s, want %s", got, golden)
	}
}
