package swapstore

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
