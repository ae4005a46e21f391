package redisstore

import (
	"errors"
	"testing"
	"time"
)

// A caller waits for 1 to 3 ms before the second attempt, twice as long before each further one, and
// not as long as another caller.
func TestHowLongACallerWaitsBeforeAnotherAttempt(t *testing.T) {
	for attempt := range mostRepeats {
		least, most := time.Millisecond<<attempt, 3*time.Millisecond<<attempt
		seen := map[time.Duration]bool{}
		for range 1000 {
			d := pauseBefore(attempt)
			if seen[d] = true; d < least || d >= most {
				t.Fatalf("%v before attempt %d, want %v to %v", d, attempt, least, most)
			}
		}
		if len(seen) < 100 {
			t.Errorf("only %d different pauses before attempt %d", len(seen), attempt)
		}
	}
}

func TestWhichRepliesProveThatNothingRan(t *testing.T) {
	for reply, want := range map[string]bool{
		"MOVED 1 127.0.0.1:1": true, "ASK 1 127.0.0.1:1": true, "LOADING Redis is loading": true, "READONLY You can't": true,
		"CLUSTERDOWN The cluster is down": true, "TRYAGAIN Multiple keys": true, "MASTERDOWN Link": true,
		"ERR anything": false, "OOM command": false, "FLOODGATE some": false, "MOVEDNOT": false, "ERR READONLY x": false, "": false,
	} {
		if got := ranNot(scriptError(reply)); got != want {
			t.Errorf("%q proves that nothing ran: %v, want %v", reply, got, want)
		}
	}
	if ranNot(errors.New("MOVED 1 127.0.0.1:1")) || ranNot(nil) {
		t.Error("an error that is not a server's reply proves something")
	}
}
