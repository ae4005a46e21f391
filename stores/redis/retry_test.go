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
		if got := ranNot(scriptError(reply)); got != want {
			t.Errorf("%q proves that nothing ran: %v, want %v", reply, got, want)
		}
	}
	if ranNot(errors.New("MOVED 1 127.0.0.1:1")) || ranNot(nil) {
		t.Error("an error that is not a server's reply proves something")
	}
}
