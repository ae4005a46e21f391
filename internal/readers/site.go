package readers

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// Site is an application in one framework. Its handlers read a value in one
// way. They answer a POST with 401, and a request with another method too unless
// Form is set: then with 200, as a handler does that sends the page of the form.
type Site struct {
	Name      string // of the framework and of the reader
	Serve     func(raw []byte)
	Canonical func(read string) string // what must have been counted
	Form      bool

	Reached      bool   // the last request reached the handler
	Read         string // what the handler read
	counted      string
	countedFound bool
}

// Saw notes what the handler has read.
func (s *Site) Saw(value string) { s.Reached, s.Read = true, value }

// Status returns the handler's answer to a request with a method.
func (s *Site) Status(method string) int {
	if s.Form && method != http.MethodPost {
		return http.StatusOK
	}
	return http.StatusUnauthorized
}

// Count notes what was counted.
func (s *Site) Count(value string) { s.counted, s.countedFound = value, true }

// Try sends a request and reports what is wrong with what was counted.
func (s *Site) Try(raw []byte) error {
	s.Reached, s.Read, s.counted, s.countedFound = false, "", "", false
	s.Serve(raw)
	switch {
	case !s.Reached || s.Read == "":
		return nil
	case !s.countedFound:
		return fmt.Errorf("%s: the handler read %q, and nothing was counted", s.Name, s.Read)
	case s.counted != s.Canonical(s.Read):
		return fmt.Errorf("%s: the handler read %q, and %q was counted", s.Name, s.Read, s.counted)
	}
	return nil
}

// Guarded makes the checker of a site: a login guard that counts a field.
func Guarded(t testing.TB, change func(*login.Config)) func(*Site) core.Checker {
	return func(s *Site) core.Checker {
		s.Canonical = login.Normalize
		c := login.Config{
			Identify: true, Log: slog.New(slog.DiscardHandler),
			Store:    core.Must(core.NewMemory(core.MemoryConfig{Clock: Frozen, MaxKeys: 1000})),
			Attempts: core.PerMinute(core.MaxQuota), Failures: core.PerMinute(core.MaxQuota), AccountFailures: core.PerMinute(core.MaxQuota),
			SuspiciousAfter: core.MaxQuota - 1,
			OnEvent: func(e login.Event) {
				if e.Kind == login.EventFailed {
					s.Count(e.Account)
				}
			},
		}
		change(&c)
		guard := core.Must(login.NewGuard(c))
		t.Cleanup(func() { _ = guard.Close() })
		return guard
	}
}

// ByField makes the guard count a field.
func ByField(field string) func(*login.Config) {
	return func(c *login.Config) { c.Field = field }
}

// Keyed makes the checker of a site: a limiter with a key.
func Keyed(key core.KeyFunc, canonical func(string) string) func(*Site) core.Checker {
	return func(s *Site) core.Checker {
		s.Canonical = canonical
		store := core.Must(core.NewMemory(core.MemoryConfig{Clock: Frozen, MaxKeys: 1000}))
		return core.Must(core.New(core.Config{Name: "keyed", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(core.MaxQuota)}, Key: func(dst []byte, r core.Request) ([]byte, error) {
			k, err := key(dst, r)
			s.Count(string(k))
			return k, err
		}}}}))
	}
}

// Frozen is a clock that stands still.
func Frozen() time.Time { return time.Unix(1_764_000_000, 0) }

// OverHTTP sends requests to a handler of net/http.
func OverHTTP(h http.Handler) func([]byte) {
	return func(raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return // the server refuses it
		}
		r.RemoteAddr = "192.0.2.1:4711"
		h.ServeHTTP(httptest.NewRecorder(), r)
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll()
		}
	}
}
