package swapstore

import (
	"encoding/base64"
	"testing"
	"time"
	_ "time/tzdata" // so that every system has the zones

	"github.com/floodgate-go/floodgate/core"
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
