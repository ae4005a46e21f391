package processtest

import "testing"

func TestASignalThatTheSystemDoesNotKnowKills(t *testing.T) {
	p, err := run(t, Command("serve", "127.0.0.1:0"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.end(noSignal{})
	if !p.hasEnded() {
		t.Error("it goes on")
	}
}

// noSignal is a signal that no system has.
type noSignal struct{}

func (noSignal) Signal()        {}
func (noSignal) String() string { return "none" }
