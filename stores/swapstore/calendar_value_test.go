package swapstore

import (
	"encoding/base64"
	"testing"
	"time"
	_ "time/tzdata" // so that every system has the zones

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// The format of a month's state changes only with the version byte. Another zone's
// is kept beside it.
func TestStoredValueOfACalendar(t *testing.T) {
	var value []byte
	for _, zone := range []string{"Europe/Berlin", "Asia/Kathmandu"} {
		z, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		l := limits.Of(core.PerMonth(10).In(z))
		ids, meters := []meter.Identity{l.Identity()}, []meter.Meter{meter.New(l)}
		v := decodeStored(value, ids, meters, codecNow)
		if value != nil && v.is != readable || meters[0].Remaining(v.states[0], codecNow) != 10 {
			t.Fatalf("%s: %+v", zone, v)
		}
		meters[0].Charge(v.states[0], codecNow, 2)
		value, _ = v.encode(ids, meters, codecNow)
	}
	const golden = "AiOAxNXz+rSiBgyAwNLo+U3z7OPI77cagMTr/4qeoQYCgJqeASOA8L+n+rWiBgyAwNLo+U2K5ofnjYkEgPDVs4qfoQYCgJqeAQ=="
	if got := base64.StdEncoding.EncodeToString(value); got != golden {
		t.Errorf("stored %s, want %s", got, golden)
	}
}
