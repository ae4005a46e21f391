package readers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers/attack"
	"github.com/floodgate-go/floodgate/login"
)

// Whatever an attacker sends, the name that a handler reads is the one that was
// counted, or the request is refused.
func TestAHandlerReadsTheNameThatWasCounted(t *testing.T) {
	for _, s := range logins(attack.Guarded(t, attack.ByField("username"))) {
		for _, a := range attack.All {
			for _, chunked := range []bool{false, true} {
				for range 10 { // frameworks go through maps in any order
					if err := s.Try(attack.Request(a.Method, a.Query, a.ContentType, []byte(a.Body), chunked)); err != nil {
						t.Errorf("%s: %v", a.Name, err)
						break
					}
					if len(a.Body)+len(a.Query) > 10_000 {
						break
					}
				}
			}
		}
	}
}

// The last part of the path user[name] is the username for some handlers.
func TestAHandlerReadsTheNestedNameThatWasCounted(t *testing.T) {
	sites := nested(attack.Guarded(t, attack.ByField("user[name]")))
	for _, r := range []struct{ method, query, contentType, body string }{
		{"POST", "", attack.Form, "user[name]=decoy&name=victim"},
		{"POST", "", attack.Form, "name=victim&user.name=decoy"},
		{"POST", "", attack.Multipart, attack.Part("user[name]", "decoy") + attack.Part("Name", "victim") + attack.Part("name", "victim") + "--XX--\r\n"},
		{"POST", "name=victim", attack.Form, "user[name]=decoy"},
		{"GET", "name=victim", attack.Form, ""},
		{"DELETE", "user[name]=decoy&name=victim", "", ""},
	} {
		for _, s := range sites {
			if err := s.Try(attack.Request(r.method, r.query, r.contentType, []byte(r.body), false)); err != nil {
				t.Errorf("%+v: %v", r, err)
			}
		}
	}
}

// The attacks are real: without a guard, some handler reads the victim's name
// from each of them.
func TestTheAttacksAreReal(t *testing.T) {
	all := logins(attack.Guarded(t, func(c *login.Config) {
		c.AllowUnnamed = true
		c.Sources = []core.KeyFunc{func(dst []byte, _ core.Request) ([]byte, error) { return dst, nil }}
	}))
	for _, a := range attack.All {
		if strings.Contains(a.Name, "around the name") {
			continue // no framework reads it today
		}
		if !isRead(all, attack.Request(a.Method, a.Query, a.ContentType, []byte(a.Body), false)) {
			t.Errorf("%s: no handler reads the victim's name", a.Name)
		}
	}
}

// isRead reports whether a handler reads the victim's name from a request.
func isRead(all []*attack.Site, raw []byte) bool {
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

// Ordinary requests are counted and reach the handler.
func TestOrdinaryRequestsReachTheHandler(t *testing.T) {
	for _, s := range logins(attack.Guarded(t, attack.ByField("username"))) {
		if !slices.Contains([]string{"net/http, PostFormValue", "Gin, PostForm", "Echo, PostFormValue", "Fiber, BodyParser"}, s.Name) {
			continue
		}
		for _, r := range []struct{ query, contentType, body string }{
			{"", attack.Form, "username=alice&password=x"},
			{"next=%2Fhome&user=x", attack.Form + "; charset=utf-8", "password=x&username=+Alice+"},
			{"", attack.Multipart, attack.Part("password", "x") + attack.Part("username", "alice") + "--XX--\r\n"},
			{"", `multipart/form-data; boundary="XX"`, attack.Part("username", "alice") + "--XX--"},
		} {
			for _, chunked := range []bool{false, true} {
				err := s.Try(attack.Request("POST", r.query, r.contentType, []byte(r.body), chunked))
				if err != nil || login.Normalize(s.Read) != "alice" {
					t.Errorf("%s: %+v: read %q, %v", s.Name, r, s.Read, err)
				}
			}
		}
	}
}

func FuzzGuard(f *testing.F) {
	for _, a := range attack.All {
		f.Add(a.Method, a.Query, a.ContentType, []byte(a.Body), false)
	}
	all := logins(attack.Guarded(f, attack.ByField("username")))
	f.Fuzz(func(t *testing.T, method, query, contentType string, body []byte, chunked bool) {
		if len(body) > 100_000 || len(query) > 100_000 {
			return
		}
		raw := attack.Request(method, query, contentType, body, chunked)
		for _, s := range all {
			if err := s.Try(raw); err != nil {
				t.Error(err)
			}
		}
	})
}
