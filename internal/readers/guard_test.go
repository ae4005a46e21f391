package readers_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// Whatever an attacker sends, the name that a handler reads is the one that was
// counted, or the request is refused.
func TestAHandlerReadsTheNameThatWasCounted(t *testing.T) {
	for _, s := range sites(t) {
		for _, a := range attacks {
			for _, chunked := range []bool{false, true} {
				for range 3 { // frameworks go through maps in any order
					if err := s.try(request(a.method, a.query, a.contentType, []byte(a.body), chunked)); err != nil {
						t.Errorf("%s: %v", a.name, err)
						break
					}
					if len(a.body)+len(a.query) > 10_000 {
						break
					}
				}
			}
		}
	}
}

// The attacks are real: without a guard, some handler reads the victim's name
// from each of them.
func TestTheAttacksAreReal(t *testing.T) {
	all := sites(t)
	nobody := func(dst []byte, _ core.Request) ([]byte, error) { return dst, nil }
	for _, s := range all {
		s.guard = core.Must(login.NewGuard(login.Config{Sources: []core.KeyFunc{nobody}, AllowUnnamed: true, Attempts: core.PerMinute(core.MaxQuota), Failures: core.PerMinute(core.MaxQuota), AccountFailures: core.PerMinute(core.MaxQuota)}))
		t.Cleanup(func() { _ = s.guard.Close() })
		s.serve = serve[s.framework](s)
	}
	for _, a := range attacks {
		if strings.Contains(a.name, "around the name") {
			continue // no framework reads it today
		}
		var readers []string
		for _, s := range all {
			for range 10 { // frameworks go through maps in any order
				_ = s.try(request(a.method, a.query, a.contentType, []byte(a.body), false))
				if strings.Contains(s.read, "vic") { // victim, in some spelling
					readers = append(readers, s.framework+" "+s.reader)
					break
				}
			}
		}
		if len(readers) == 0 {
			t.Errorf("%s: no handler reads the victim's name", a.name)
		}
	}
}

// Ordinary requests are counted and reach the handler.
func TestOrdinaryRequestsReachTheHandler(t *testing.T) {
	for framework, reader := range map[string]string{"nethttp": "PostFormValue", "gin": "PostForm", "echo": "PostFormValue", "fiber": "BodyParser"} {
		s := newSite(t, framework, reader)
		for _, r := range []struct{ query, contentType, body string }{
			{"", form, "username=alice&password=x"},
			{"next=%2Fhome&user=x", form + "; charset=utf-8", "password=x&username=+Alice+"},
			{"", multipart, part("password", "x") + part("username", "alice") + "--XX--\r\n"},
			{"", `multipart/form-data; boundary="XX"`, part("username", "alice") + "--XX--"},
		} {
			for _, chunked := range []bool{false, true} {
				err := s.try(request("POST", r.query, r.contentType, []byte(r.body), chunked))
				if err != nil || login.Normalize(s.read) != "alice" {
					t.Errorf("%s: %+v: read %q, %v", framework, r, s.read, err)
				}
			}
		}
	}
}

func FuzzGuard(f *testing.F) {
	for _, a := range attacks {
		f.Add(a.method, a.query, a.contentType, []byte(a.body), false)
	}
	all := sites(f)
	f.Fuzz(func(t *testing.T, method, query, contentType string, body []byte, chunked bool) {
		if len(body) > 100_000 || len(query) > 100_000 {
			return
		}
		raw := request(method, query, contentType, body, chunked)
		for _, s := range all {
			if err := s.try(raw); err != nil {
				t.Error(err)
			}
		}
	})
}
