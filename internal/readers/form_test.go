package readers_test

import (
	"log/slog"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers/attack"
	"github.com/floodgate-go/floodgate/login"
)

// A handler of all methods answers GET with the page of the form. A client that
// asks for the page with a username in the body must not get more guesses by that.
func TestAskingForTheFormIsNoSuccess(t *testing.T) {
	checker := func(*attack.Site) core.Checker {
		guard := core.Must(login.NewGuard(login.Config{
			Field: "username", Log: slog.New(slog.DiscardHandler), Attempts: core.PerMinute(1000),
			Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: attack.Frozen})),
		}))
		t.Cleanup(func() { _ = guard.Close() })
		return guard
	}
	for _, s := range logins(checker) {
		s.Form = true
		guesses := 0
		for i := range 100 {
			for _, method := range []string{"POST", []string{"GET", "HEAD", "OPTIONS", "PUT"}[i%4]} {
				s.Reached = false
				s.Serve(attack.Request(method, "", attack.Form, []byte("username=victim&password=guess"), false))
				if s.Reached && method == "POST" {
					guesses++
				}
			}
		}
		if guesses != 5 {
			t.Errorf("%s: %d guesses are checked, want 5", s.Name, guesses)
		}
	}
}
