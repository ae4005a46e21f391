package resilient

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A store that names ever new servers does not make the process keep a circuit
// for each.
func TestTheServersBeyondTheMostShareACircuit(t *testing.T) {
	c := newCircuits(&Config{Retry: time.Second, Failures: 1})
	own := map[*circuit]string{c.whole: "the store as a whole"}
	for i := range maxServers {
		name := fmt.Sprint("server", i)
		k := c.of(name)
		if other, taken := own[k]; taken {
			t.Fatalf("%s shares the circuit of %s", name, other)
		}
		own[k] = name
	}
	for _, name := range []string{"one more", "and another"} {
		if c.of(name) != c.whole {
			t.Errorf("server %q has a circuit of its own beside %d others", name, maxServers)
		}
	}
	if k := c.of("server0"); own[k] != "server0" {
		t.Errorf("the first server now has the circuit of %s", own[k])
	}
}

// Requests that are the first to ask a server at the same moment share its circuit.
func TestAServerHasOneCircuit(t *testing.T) {
	c := newCircuits(&Config{Retry: time.Second, Failures: 1})
	for i := range maxServers {
		var got [4]*circuit
		var all sync.WaitGroup
		c.mu.Lock() // all of them wait for their first look
		for j := range got {
			all.Go(func() { got[j] = c.of(fmt.Sprint("server", i)) })
		}
		for range 100 {
			runtime.Gosched()
		}
		c.mu.Unlock()
		all.Wait()
		for _, k := range got {
			if k != got[0] {
				t.Fatalf("server %d has several circuits, want one", i)
			}
		}
	}
}

// A server may have lost what it had if it fails, once in Config.Retry, and if its circuit opens. A server that
// is only slow has lost nothing before its circuit opens.
func TestWhenAServerMayHaveLostWhatItHad(t *testing.T) {
	for _, row := range []struct {
		name     string
		err      error
		failures int // in a row, which is how many open the circuit
		rows     int // with a success after each
		pause    time.Duration
		want     uint64
	}{
		{"too slow each time", context.DeadlineExceeded, 3, 0, 0, 1},
		{"failures among successes", errAway, 3, 4, 0, 1},
		{"failures far apart", errAway, 3, 4, time.Second, 4},
		{"slow answers among others", context.DeadlineExceeded, 3, 4, time.Second, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newCircuit("", &Config{Retry: time.Second, Failures: row.failures, Log: slog.New(slog.DiscardHandler)})
			end := func(err error) {
				ticket, denied := k.allow()
				if denied != nil {
					t.Fatal(denied)
				}
				ticket.done(err, err != nil)
			}
			for range row.rows {
				end(row.err)
				end(nil)
				time.Sleep(row.pause)
			}
			if row.rows == 0 {
				for range row.failures {
					end(row.err)
				}
			}
			if got := k.outages.Load(); got != row.want {
				t.Errorf("%s: got %d outages, want %d", row.name, got, row.want)
			}
		})
	}
}
