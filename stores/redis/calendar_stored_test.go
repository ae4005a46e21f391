package redisstore_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
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
