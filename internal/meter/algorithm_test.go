package meter

import "testing"

// Stored states and the Redis script have these numbers: they never change.
func TestNamesAndWireNumbers(t *testing.T) {
	golden := map[string]uint8{"sliding_window": 0, "fixed_window": 1, "bucketed_window": 2, "sliding_log": 3, "token_bucket": 4, "lockout": 5}
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
