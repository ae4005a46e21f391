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
	r := usedUpRecord(now, length)
	return appendRecord(dst, r.expiry, r.body)
}

// chargedValue is the value of a key of such a rule with so many hits.
func chargedValue(window time.Duration, old []byte, now, hits int64) []byte {
	limits := codecRule(window)
	v := decode(old, limits, now)
	for i := range limits {
		m := &limits[i]
		m.Advance(v.states[i], now)
		w := make([]uint64, max(len(v.states[i]), m.Words(v.states[i], hits)))
		m.Grow(w, v.states[i])
		m.Charge(w, now, hits)
		v.states[i] = w
	}
	value, _ := v.encode(limits, now)
	return value
}

func usedOf(window time.Duration, value []byte, now int64) (used []int64, is readability) {
	limits := codecRule(window)
	v := decode(value, limits, now)
	for i := range limits {
		m := &limits[i]
		m.Advance(v.states[i], now)
		used = append(used, m.Capacity()-m.Remaining(v.states[i], now))
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

// A record of a kind that a later version has added is kept by its length.
func TestAWriteKeepsRecordsOfUnknownKinds(t *testing.T) {
	unknown := appendRecord(nil, codecNow+time.Hour.Microseconds(), append([]byte{44}, "whatever"...))
	value := append(chargedValue(time.Hour, nil, codecNow, 1), unknown...)
	value = chargedValue(time.Hour, value, codecNow, 1)
	if !bytes.Contains(value, unknown) {
		t.Error("the record is gone")
	}
	if used, _ := usedOf(time.Hour, value, codecNow); used[0] != 2 {
		t.Errorf("%d hits beside the record, want 2", used[0])
	}
}

func TestAValueKeepsABoundedPartOfOthers(t *testing.T) {
	var value []byte
	for i := range 100 {
		value = chargedValue(time.Hour+time.Duration(i)*time.Minute, value, codecNow, 1)
	}
	limits := codecRule(time.Minute)
	v := decode(value, limits, codecNow)
	if len(v.foreign) > maxForeign+len(limits) {
		t.Errorf("%d foreign records", len(v.foreign))
	}
	if used, _ := usedOf(time.Hour+99*time.Minute, value, codecNow); used[0] != 1 {
		t.Error("the states that expire last were dropped")
	}
	if used, _ := usedOf(time.Hour+98*time.Minute, value, codecNow); used[0] != 1 {
		t.Error("the states that expire last but a few were dropped")
	}
	if used, _ := usedOf(time.Hour, value, codecNow); fmt.Sprint(used) != "[0 0 0 0 0 0]" {
		t.Errorf("of the states that expire first, %v were kept", used)
	}
	value = []byte{stateVersion}
	for range 10 {
		value = append(value, appendRecord(nil, codecNow+1e9, append([]byte{44}, make([]byte, 100_000)...))...)
	}
	if value = chargedValue(time.Hour, value, codecNow, 1); len(value) > maxForeignBytes+10_000 {
		t.Errorf("a value of %d bytes", len(value))
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
		"a longer denial":   {appendRecord([]byte{stateVersion}, codecNow+1, []byte{kindUsedUp, 1, 0}), unreadable},
		"as it was":         {value, readable},
	} {
		used, is := usedOf(time.Hour, c.value, codecNow)
		if is != c.want || c.want != readable && used[0] != 0 {
			t.Errorf("%s: %v, used %v, want %v", name, is, used, c.want)
		}
	}
}

// A value that could not be read denies its key for a time that it states. If
// the end of that time is twice as far ahead or more, the clock has been set back.
func TestADenialOfAClockThatWasSetBackEnds(t *testing.T) {
	limits := codecRule(time.Hour)
	const length = 60_000_000
	value := denied([]byte{stateVersion}, codecNow, length)
	for ahead, denies := range map[int64]bool{0: false, 1: true, length: true, 2*length - 1: true, 2 * length: false, 3*length - 1: false} {
		now := codecNow + length - ahead
		if v := decode(value, limits, now); (v.usedUp > now) != denies || (len(v.foreign) == 1) != denies || v.is != readable {
			t.Errorf("a denial of %d µs whose end is %d µs ahead: denies %v, want %v", length, ahead, !denies, denies)
		}
	}
}

// Of several denials of a key, the one that ends last holds.
func TestTheLastOfSeveralDenialsHolds(t *testing.T) {
	limits := codecRule(time.Hour)
	short, long := denied(nil, codecNow, 1e6), denied(nil, codecNow, 9e6)
	for _, records := range [][][]byte{{short, long}, {long, short}} {
		value := append(append([]byte{stateVersion}, records[0]...), records[1]...)
		if v := decode(value, limits, codecNow); v.usedUp != codecNow+9e6 || v.is != readable {
			t.Errorf("the key is denied until %d, want %d", v.usedUp-codecNow, int64(9e6))
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
			m.Advance(v.states[i], codecNow)
			if left := m.Remaining(v.states[i], codecNow); left < 0 || left > m.Capacity() {
				t.Errorf("%v: %d left", limits[i].id, left)
			}
			if wait := m.Wait(v.states[i], codecNow, 1); wait < 0 || wait > 5*m.Window() {
				t.Errorf("%v: wait %d", limits[i].id, wait)
			}
			if need := m.Words(v.states[i], 1); len(v.states[i]) < need {
				w := make([]uint64, need)
				m.Grow(w, v.states[i])
				v.states[i] = w
			}
			if m.Allows(v.states[i], codecNow, 1) {
				m.Charge(v.states[i], codecNow, 1)
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

// The value is kept as long as the last state in it, whoever's it is.
func TestAValueExpiresWithItsLastState(t *testing.T) {
	limits := codecRule(time.Minute)
	v := decode(chargedValue(24*time.Hour, nil, codecNow, 1), limits, codecNow)
	if _, expiry := v.encode(limits, codecNow); expiry < codecNow+24*time.Hour.Microseconds() {
		t.Errorf("expires %v from now", time.Duration(expiry-codecNow)*time.Microsecond)
	}
}

// body writes the fields of a state: an int64 as a signed number, a uint64 as an
// unsigned one.
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
	buckets := uint64(limits[bucketed].Buckets()) + 1
	counts := func(n uint64, of ...uint64) []any {
		fields := []any{now / limits[bucketed].Precision(), n}
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
		"the newest bucket":                   {bucketed, []any{latest / limits[bucketed].Precision(), uint64(1), uint64(1)}, []any{latest + 1, uint64(1), uint64(1)}},
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
	longest := uint64(core.MaxWindow.Microseconds())
	for length, want := range map[uint64]readability{longest: readable, longest + 1: unreadable} {
		value := append([]byte{stateVersion}, appendRecord(nil, now+1, body(nil, uint64(kindUsedUp), length))...)
		if v := decode(value, limits, now); v.is != want {
			t.Errorf("a denial of %d µs: read as %v, want %v", length, v.is, want)
		}
	}
	for expiry, want := range map[int64]readability{latest: readable, latest + 1: unreadable} {
		value := append([]byte{stateVersion}, appendRecord(nil, expiry, body(nil, uint64(44)))...)
		if v := decode(value, limits, now); v.is != want {
			t.Errorf("a record that expires at %d: read as %v, want %v", expiry, v.is, want)
		}
	}
}

// foreign makes records of another program, of size bytes each, which expire
// one after the other.
func foreign(n, size int) (records []record) {
	for i := range n {
		records = append(records, record{codecNow + 1e9 + int64(i), append([]byte{44}, make([]byte, size-1)...)})
	}
	return records
}

// Of the records of others as many are kept as the bounds allow, and those that
// expire last.
func TestHowManyRecordsOfOthersAreKept(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, maxForeign: maxForeign, maxForeign + 1: maxForeign, 3 * maxForeign: maxForeign} {
		v := stored{foreign: foreign(n, 32)}
		kept := v.kept(codecNow)
		if len(kept) != want {
			t.Errorf("%d of %d records are kept, want %d", len(kept), n, want)
		}
		for _, f := range kept {
			if n > maxForeign && f.expiry < codecNow+1e9+int64(n-maxForeign) {
				t.Errorf("of %d records one is kept that expires sooner than one that is not", n)
			}
		}
	}
	const half = maxForeignBytes / 2
	for extra, want := range map[int]int{0: 2, 1: 1} {
		records := foreign(2, half)
		records[0] = foreign(1, half+extra)[0]
		if size := len(records[0].body) + len(records[1].body); size != maxForeignBytes+extra {
			t.Fatalf("%d bytes", size)
		}
		v := stored{foreign: records}
		if kept := v.kept(codecNow); len(kept) != want || kept[0].expiry != records[2-want].expiry {
			t.Errorf("%d bytes: %d records are kept, want %d", maxForeignBytes+extra, len(kept), want)
		}
	}
}

// Records that fill the bound are kept, also if there is one more that is not.
func TestRecordsOfOthersThatFillTheBound(t *testing.T) {
	v := stored{foreign: foreign(maxForeign+1, maxForeignBytes/maxForeign)}
	if kept := v.kept(codecNow); len(kept) != maxForeign {
		t.Errorf("%d records of %d bytes together are kept, want %d", len(kept), maxForeignBytes, maxForeign)
	}
}

// A state that expires now is not written.
func TestAStateThatExpiresNowIsNotWritten(t *testing.T) {
	const fixed = 1
	limits := codecRule(time.Hour)[fixed : fixed+1]
	v := decode(nil, limits, codecNow)
	limits[0].Charge(v.states[0], codecNow, 1)
	end := limits[0].Expiry(v.states[0])
	if value, _ := v.encode(limits, end-1); len(value) < 5 {
		t.Errorf("a microsecond before the end %x is written", value)
	}
	if value, expiry := v.encode(limits, end); len(value) != 1 || expiry != end {
		t.Errorf("at the end %x is written until %d", value, expiry)
	}
}

// A record with the identity of a limit and no state is damaged.
func TestARecordWithoutAState(t *testing.T) {
	limits := codecRule(time.Hour)
	for i := range limits {
		value := append([]byte{stateVersion}, appendRecord(nil, codecNow+1e9, limits[i].id)...)
		if v := decode(value, limits, codecNow); v.is != unreadable {
			t.Errorf("limit %d: read as %v, with %d records of others", i, v.is, len(v.foreign))
		}
	}
}

// The program that wrote a record may have a clock that is a minute late: for so
// long its record is kept after it has expired, by reading and by writing.
func TestRecordsOfOthersAreKeptForAMinuteLonger(t *testing.T) {
	limits := codecRule(time.Hour)
	r := foreign(1, 32)[0]
	value := appendRecord([]byte{stateVersion}, r.expiry, r.body)
	for after, want := range map[time.Duration]int{0: 1, time.Minute - time.Microsecond: 1, time.Minute: 0} {
		now := r.expiry + after.Microseconds()
		if v := decode(value, limits, now); len(v.foreign) != want {
			t.Errorf("%v after it has expired %d records are read, want %d", after, len(v.foreign), want)
		}
		v := stored{foreign: []record{r}}
		if kept := v.kept(now); len(kept) != want {
			t.Errorf("%v after it has expired %d records are kept, want %d", after, len(kept), want)
		}
	}
}

// A record of another program that expires too late is cut: to three windows for
// the kinds whose window is read, and to longestLife for all others. What follows
// the expiry stays.
func TestTheExpiryOfAForeignRecordIsCut(t *testing.T) {
	const now, hour = 1_764_000_123_456_789, 3_600_000_000
	number := func(kind uint64, rest ...uint64) []byte {
		b := binary.AppendUvarint(nil, kind)
		for _, n := range rest {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	longest := uint64(core.MaxWindow.Microseconds())
	const longestLife = (36_500 + 366) * 24 * hour // of a bucket, by a clock that is a window ahead
	for name, c := range map[string]struct {
		body []byte
		most int64
	}{
		"a sliding window":           {number(0, hour, 0, 7), 3 * hour},
		"an aligned log":             {number(7, hour, 0, 7), 3 * hour},
		"the longest window":         {number(2, longest, 0, 7), 3 * int64(longest)},
		"a token bucket":             {number(8, hour, 0, 7), longestLife},
		"a lockout":                  {number(10, hour, 0, 7), longestLife},
		"a window that none has":     {number(0, longest+1, 0, 7), longestLife},
		"a window without an end":    {[]byte{0, 0xff}, longestLife},
		"a kind alone":               {number(3), longestLife},
		"a kind that nobody has yet": {number(200, hour), longestLife},
	} {
		for _, over := range []int64{-1, 0, 1, 1 << 50} {
			v := decode(appendRecord([]byte{stateVersion}, now+c.most+over, c.body), nil, now)
			if v.is != readable || len(v.foreign) != 1 {
				t.Fatalf("%s: not kept: %+v", name, v)
			}
			got, want := v.foreign[0], now+c.most+min(over, 0)
			if got.expiry != want || !bytes.Equal(got.body, c.body) {
				t.Errorf("%s, %d µs more: expires %d µs from now, want %d; the record is %x", name, over, got.expiry-now, want-now, got.body)
			}
		}
	}
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
		if value != nil && v.is != readable || limits[0].Remaining(v.states[0], codecNow) != 10 {
			t.Fatalf("%s: %+v", zone, v)
		}
		limits[0].Charge(v.states[0], codecNow, 2)
		value, _ = v.encode(limits, codecNow)
	}
	const golden = "AiOAxNXz+rSiBgyAwNLo+U3z7OPI77cagMTr/4qeoQYCgJqeASOA8L+n+rWiBgyAwNLo+U2K5ofnjYkEgPDVs4qfoQYCgJqeAQ=="
	if got := base64.StdEncoding.EncodeToString(value); got != golden {
		t.Errorf("stored %s, want %s", got, golden)
	}
}
