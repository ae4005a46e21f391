package redisstore

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// The limits of a key tell the script how far the windows of the key are shifted, each limit
// that spreads them for itself. Nothing else differs from the limits of no key.
func TestTheShiftsOfAKeysWindows(t *testing.T) {
	rule := []core.Limit{
		{Quota: 5, Window: time.Hour, Spread: true},
		{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Hour}},
		{Quota: 50, Window: 24 * time.Hour, Spread: true},
		{Quota: 90, Window: time.Minute},
	}
	r := newBound(New(nil), "l", []core.StoreRule{{Name: "r", Limits: rule}}).rules[0]
	texts := encodeLimits(rule, false)
	got := []byte(r.spreadText("name", texts).(string))
	for limit, at := range map[int]int{0: 0, 2: 2*textLimit + textLockout} {
		shift := got[at+textPrecision : at+textPrecision+6]
		want := r.meters[limit].ShiftOf(meter.Share("name"))
		if n := binary.LittleEndian.Uint64(append(append([]byte(nil), shift...), 0, 0)); want == 0 || n != uint64(want) {
			t.Errorf("limit %d: the shift is %d, want %d", limit, n, want)
		}
		copy(shift, texts[at+textPrecision:])
	}
	if string(got) != texts {
		t.Errorf("beside the shifts the limits are %q, want %q", got, texts)
	}
	r.spread = false
	if got := r.spreadText("name", texts); got != any(texts) {
		t.Errorf("no limit spreads its windows, and the limits are %q, want %q", got, texts)
	}
}
