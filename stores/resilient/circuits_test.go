package resilient

import (
	"fmt"
	"testing"
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
