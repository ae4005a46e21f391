package redisstore

import (
	"errors"
	"testing"
)

func TestWhichRepliesProveThatNothingRan(t *testing.T) {
	for reply, want := range map[string]bool{
		"MOVED 1 127.0.0.1:1": true, "ASK 1 127.0.0.1:1": true, "LOADING Redis is loading": true, "READONLY You can't": true,
		"CLUSTERDOWN The cluster is down": true, "TRYAGAIN Multiple keys": true, "MASTERDOWN Link": true,
		"ERR anything": false, "OOM command": false, "FLOODGATE some": false, "MOVEDNOT": false, "ERR READONLY x": false, "": false,
	} {
		if got := ranNot(serverError(reply)); got != want {
			t.Errorf("%q proves that nothing ran: %v, want %v", reply, got, want)
		}
	}
	if ranNot(errors.New("MOVED 1 127.0.0.1:1")) || ranNot(nil) {
		t.Error("an error that is not a server's reply proves something")
	}
}

// A command is known not to have run until it is serialised, and after a reply
// that proves it. Only then can it be withdrawn, and is never serialised again.
func TestACommandIsWithdrawnOnlyWhileItHasNotRun(t *testing.T) {
	n := &nonce{number: 7}
	write := func() error {
		t.Helper()
		b, err := n.MarshalBinary()
		if err == nil && (len(b) != 8 || number(string(b)) != 7) {
			t.Errorf("serialised as %x", b)
		}
		return err
	}
	if n.sent() {
		t.Error("sent before it was serialised")
	}
	for range 2 { // a redirect
		if err := write(); err != nil || !n.sent() || n.withdraw() {
			t.Errorf("error %v, sent %v, or it could be withdrawn", err, n.sent())
		}
	}
	n.ranNot()
	if n.sent() || !n.withdraw() {
		t.Error("a command that did not run cannot be withdrawn")
	}
	if err := write(); !errors.Is(err, errWithdrawn) || n.sent() {
		t.Errorf("a withdrawn command is serialised: error %v, sent %v", err, n.sent())
	}
	if n.ranNot(); n.sent() || n.withdraw() {
		t.Error("it is withdrawn twice")
	}
}

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}
