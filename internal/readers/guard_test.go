package readers_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// Whatever an attacker sends, the value that a handler reads is the one that was counted,
// or the request is refused.
func TestAHandlerReadsTheValueThatWasCounted(t *testing.T) {
	t.Run("net/http", netHTTP.Run)
	t.Run("Gin", inGin.Run)
	t.Run("Echo", inEcho.Run)
	t.Run("Fiber", inFiber(false).Run)
	t.Run("Fiber with streams", inFiber(true).Run)
}

// logins are the sites with the field username.
func logins(checker func(*readers.Site) core.Checker) []*readers.Site {
	return slices.Concat(netHTTP.Sites(netNames, checker), inGin.Sites(ginNames, checker), inEcho.Sites(echoNames, checker), inFiber(false).Sites(fiberNames, checker))
}

// notRead are the attacks from which no handler of today's versions reads the victim's name.
var notRead = map[string]bool{
	"brackets around the name": true, "YAML in braces behind dots": true, "two types, a form and a multipart form": true,
	"a number that a float64 cannot tell from the next": true, "a number with a fraction": true,
}

// The attacks are real: without a guard, some handler reads the victim's name from each of them.
func TestTheAttacksAreReal(t *testing.T) {
	all := logins(readers.Guarded(t, func(c *login.Config) {
		c.Sources = []core.KeyFunc{keyfuncs.Static("anybody")}
	}))
	for _, a := range readers.Attacks["username"] {
		if notRead[a.Name] {
			continue
		}
		if !isRead(all, readers.Request(a.Method, a.Query, a.ContentType, []byte(a.Body), false)) {
			t.Errorf("%s: no handler reads the victim's name", a.Name)
		}
	}
}

// isRead reports whether a handler reads the victim's name from a request.
func isRead(all []*readers.Site, raw []byte) bool {
	for range 200 { // frameworks go through maps in any order
		for _, s := range all {
			_ = s.Try(raw)
			if strings.Contains(s.Read, "vic") { // victim, in some spelling
				return true
			}
		}
	}
	return false
}

// A handler of all methods answers GET with the page of the form. A client that asks for the
// page with a username in the body must not get more guesses by that.
func TestAskingForTheFormIsNoSuccess(t *testing.T) {
	checker := func(*readers.Site) core.Checker {
		guard := core.Must(login.NewGuard(login.Config{
			Field: "username", Log: slog.New(slog.DiscardHandler), Attempts: core.PerMinute(1000),
			Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: readers.Frozen})),
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
				s.Serve(readers.Request(method, "", readers.FormType, []byte("username=victim&password=guess"), false))
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

func FuzzGuard(f *testing.F) {
	for _, a := range readers.Attacks["username"] {
		f.Add(a.Method, a.Query, a.ContentType, []byte(a.Body), false)
	}
	all := logins(readers.Guarded(f, readers.ByField("username")))
	f.Fuzz(func(t *testing.T, method, query, contentType string, body []byte, chunked bool) {
		if len(body) > 100_000 || len(query) > 100_000 {
			return
		}
		raw := readers.Request(method, query, contentType, body, chunked)
		for _, s := range all {
			if err := s.Try(raw); err != nil {
				t.Error(err)
			}
		}
	})
}
