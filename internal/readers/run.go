package readers

import (
	"maps"
	"net/url"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// Framework is a framework whose handlers read values. C is the type of its context.
type Framework[C any] struct {
	Name string
	// ByField are the readers of each field of Attacks. Query are those of the query parameter id,
	// and Cookies those of the cookie sid. Each reads the body once.
	ByField        map[string]map[string]func(C) string
	Query, Cookies map[string]func(C) string
	// UnescapesCookies says that Cookies undo the escapes of a value.
	UnescapesCookies bool
	// Serve returns a function that serves a request behind the checker, with a handler that reads,
	// for every method and path.
	Serve func(s *Site, checker core.Checker, read func(C) string) func(raw []byte)
}

// Sites returns a site for each of the readers.
func (f Framework[C]) Sites(readers map[string]func(C) string, checker func(*Site) core.Checker) (all []*Site) {
	for _, name := range slices.Sorted(maps.Keys(readers)) {
		s := &Site{Name: f.Name + ", " + name}
		s.Serve = f.Serve(s, checker(s), readers[name])
		all = append(all, s)
	}
	return all
}

// counted returns what counts a field.
func counted(t testing.TB, field string) func(*Site) core.Checker {
	if field != "name" {
		return Guarded(t, ByField(field))
	}
	normalize := func(name string) (string, error) { return login.Normalize(name), nil }
	key := keyfuncs.PostField("name", keyfuncs.JSONPath("user", "name"), keyfuncs.Strict(), keyfuncs.RequireValue(), keyfuncs.Normalize(normalize))
	return Keyed(key, login.Normalize)
}

func same(read string) string { return read }

func unescaped(read string) string {
	v, _ := url.QueryUnescape(read)
	return v
}

// Run tests that the value which a handler reads is the one that was counted, or that the request
// is refused, for all attacks and for random requests.
func (f Framework[C]) Run(t *testing.T) {
	fields := map[string][]*Site{}
	for field, readers := range f.ByField {
		fields[field] = f.Sites(readers, counted(t, field))
	}
	t.Run("attacks", func(t *testing.T) {
		for field, attacks := range Attacks {
			for _, s := range fields[field] {
				for _, a := range attacks {
					a.try(t, s)
				}
			}
		}
	})
	t.Run("ordinary requests", func(t *testing.T) {
		for field, requests := range Ordinary {
			for _, r := range requests {
				read := 0
				for _, s := range fields[field] {
					if !r.try(t, s) {
						t.Errorf("%s, %s: %s is refused", s.Name, field, r.Name)
					}
					if login.Normalize(s.Read) == "alice" {
						read++
					}
				}
				if read == 0 {
					t.Errorf("%s: no handler reads the name in %s", field, r.Name)
				}
			}
		}
	})
	t.Run("random requests", func(t *testing.T) {
		all := slices.Concat(fields["username"], fields["user[name]"], f.Sites(f.Query, Keyed(keyfuncs.Query("id"), same)))
		rapid.Check(t, func(t *rapid.T) { tryAll(t, all, Draw(t)) })
	})
	t.Run("random cookies", func(t *testing.T) {
		canonical := unescaped
		if f.UnescapesCookies {
			canonical = same
		}
		all := f.Sites(f.Cookies, Keyed(keyfuncs.Cookie("sid"), canonical))
		rapid.Check(t, func(t *rapid.T) { tryAll(t, all, drawCookies(t)) })
	})
}

// try sends the request in each framing to a site, and reports whether it has reached the handler
// each time. Frameworks go through maps in any order: a short request is sent several times.
func (a Attack) try(t *testing.T, s *Site) (reached bool) {
	t.Helper()
	reached = true
	times := 10
	if len(a.Body)+len(a.Query) > 10_000 {
		times = 1
	}
	for _, chunked := range []bool{false, true} {
		raw := Request(a.Method, a.Query, a.ContentType, []byte(a.Body), chunked)
		for range times {
			if err := s.Try(raw); err != nil {
				t.Errorf("%s: %v", a.Name, err)
				break
			}
			reached = reached && s.Reached
		}
	}
	return reached
}

func tryAll(t *rapid.T, all []*Site, raw []byte) {
	for _, s := range all {
		if err := s.Try(raw); err != nil {
			t.Fatalf("%v\n%q", err, raw)
		}
	}
}
