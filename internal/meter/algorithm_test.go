package meter

import "testing"

// Stored states and the Redis script have these numbers: they never change.
func TestNamesAndWireNumbers(t *testing.T) {
	golden := map[string]uint8{"sliding_window": 0, "fixed_window": 1, "bucketed_window": 2, "sliding_log": 3, "token_bucket": 4, "lockout": 5, "calendar_window": 6}
	for _, a := range Algorithms() {
		if wire, known := golden[a.String()]; !known || a.Wire() != wire {
			t.Errorf("%v has the wire number %d, want %d", a, a.Wire(), wire)
		}
		if kind := (Identity{Algorithm: a, Aligned: true}).Kind(); kind != 2*a.Wire()+1 {
			t.Errorf("%v, aligned: kind %d", a, kind)
		}
		delete(golden, a.String())
	}
	if len(golden) > 0 {
		t.Errorf("no algorithm is called %v", golden)
	}
	if got := Algorithm(len(algorithms)).String(); got != "unknown_algorithm" {
		t.Errorf("an algorithm that does not exist is called %s", got)
	}
}

// Stored states of a calendar name their zone by these numbers.
func TestTheNumbersOfZones(t *testing.T) {
	for name, want := range map[string]int64{"UTC": 107690233289514, "Europe/Berlin": 17905129485066} {
		l := Limit{Algorithm: Calendar, Window: Day, Zone: zone(t, name)}
		if got := l.Identity(); got.Detail() != want || got.Zone != name || got.Kind() != 12 {
			t.Errorf("%s: %+v, %d, want %d", name, got, got.Detail(), want)
		}
	}
	seen := map[int64]string{}
	for _, name := range zones {
		n := Identity{Algorithm: Calendar, Zone: name}.Detail()
		if seen[n] != "" || n < 0 || n >= 1<<48 {
			t.Errorf("%s has the number %d, as %q", name, n, seen[n])
		}
		seen[n] = name
	}
}
