package swapstore

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

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
