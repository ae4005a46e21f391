package swapstore

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

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
