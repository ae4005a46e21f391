package live_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// A ShowKey that panics ends no page: keys are shown as hashes, and one line says why.
func TestAShowKeyThatPanicsIsLoggedOnce(t *testing.T) {
	s := newSite(t, live.Config{ShowKey: func(_, _, key string) string {
		if key == "alice" {
			panic("who is that?")
		}
		return ""
	}}, core.Config{})
	s.take(200, "alice", "bob")
	for range 2 {
		next := s.watch()
		for range 2 {
			keys := next().Limiters[0].Denied
			if len(keys) != 2 || !strings.HasPrefix(keys[0].Label, "#") || !strings.HasPrefix(keys[1].Label, "#") || keys[0].Label == keys[1].Label {
				t.Errorf("denied most: %+v", keys)
			}
		}
	}
	s.server.CloseClientConnections()
	_ = s.page.Close()
	s.server.Close()
	if log := s.log.String(); strings.Count(log, "ShowKey panicked") != 1 || !strings.Contains(log, "who is that?") || !strings.Contains(log, "stack=") {
		t.Errorf("the log says:\n%s", log)
	}
}
