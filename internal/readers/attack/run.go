package attack

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Framework is a framework whose handlers read names. C is the type of its context.
type Framework[C any] struct {
	Name string
	// ByField are the readers of the fields username and user[name]. Query are the
	// readers of the query parameter id.
	ByField map[string]map[string]func(C) string
	Query   map[string]func(C) string
	// Serve returns a function that serves a request behind the checker, with a handler
	// that reads, for every method and path.
	Serve func(s *Site, checker core.Checker, read func(C) string) func(raw []byte)
}

// Run tests that the name which a handler reads is the one that was counted, or that the
// request is refused, for all attacks and for random requests.
func Run[C any](t *testing.T, f Framework[C]) {
	username := SitesOf(f.Name, f.ByField["username"], f.Serve, Guarded(t, ByField("username")))
	nested := SitesOf(f.Name, f.ByField["user[name]"], f.Serve, Guarded(t, ByField("user[name]")))
	query := SitesOf(f.Name, f.Query, f.Serve, Keyed(keyfuncs.Query("id"), func(read string) string { return read }))
	t.Run("attacks", func(t *testing.T) {
		reached := 0
		for _, s := range slices.Concat(username, nested) {
			for _, a := range All {
				for _, chunked := range []bool{false, true} {
					if err := s.Try(Request(a.Method, a.Query, a.ContentType, []byte(a.Body), chunked)); err != nil {
						t.Errorf("%s: %v", a.Name, err)
					}
					if s.Reached {
						reached++
					}
				}
			}
		}
		if reached == 0 {
			t.Error("no request has reached a handler: the test sees nothing")
		}
	})
	t.Run("an ordinary form", func(t *testing.T) {
		read := 0
		for _, s := range username {
			if err := s.Try(Request("POST", "", Form, []byte("username=alice&password=x"), false)); err != nil {
				t.Error(err)
			}
			if s.Reached && s.Read == "alice" {
				read++
			}
		}
		if read == 0 {
			t.Error("no handler reads the name")
		}
	})
	t.Run("random requests", func(t *testing.T) {
		all := slices.Concat(username, nested, query)
		rapid.Check(t, func(t *rapid.T) {
			raw := Draw(t)
			for _, s := range all {
				if err := s.Try(raw); err != nil {
					t.Fatalf("%v\n%q", err, raw)
				}
			}
		})
	})
}
