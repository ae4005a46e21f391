package login_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A text in Verdict.Deny is not sent as a problem document.
func TestATextOfOnSuspicionIsSentAsPlainText(t *testing.T) {
	guard := core.Must(login.NewGuard(login.Config{
		Field: "username", SuspiciousAfter: 1,
		OnSuspicion: func(r core.Request, _ login.Suspicion) login.Verdict {
			denial := core.DefaultHooks{}.OnDisallowed(r, core.Decision{Reason: core.ReasonOverLimit})
			denial.Status, denial.Body = 0, []byte("solve the puzzle")
			return login.Verdict{Deny: &denial}
		},
	}))
	t.Cleanup(func() { _ = guard.Close() })
	first := form("203.0.113.1", "alice")
	guard.Settle(first, guard.Check(first), core.Outcome{Status: 401})
	r := form("203.0.113.2", "alice")
	got := guard.Deny(r, guard.Check(r))
	if got.Status != 429 || string(got.Body) != "solve the puzzle" || !slices.Contains(got.Header, core.Header{Name: "Content-Type", Value: "text/plain; charset=utf-8"}) {
		t.Errorf("%d, %v, %s", got.Status, got.Header, got.Body)
	}
}

// Only a limit that denies has the text of too many attempts: a guard whose store fails, or that cannot read the
// username, says so.
func TestTheStandardDenialSaysWhyItDenies(t *testing.T) {
	counters, store := private(t)
	s := newSite(t, login.Config{Store: counters, Log: slog.New(slog.DiscardHandler)})
	denial := func(r *request) core.Denial {
		t.Helper()
		d := s.guard.Check(r)
		if d.Allowed {
			t.Fatalf("%v", d)
		}
		return s.guard.Deny(r, d)
	}
	many(5, func(int) int { return s.wrong("203.0.113.1", "alice") })
	over, bad := denial(form("203.0.113.1", "alice")), denial(form("203.0.113.1", ""))
	store.gone.Store(true)
	failed := denial(form("203.0.113.1", "alice"))
	for _, row := range []struct {
		got    core.Denial
		status int
		text   string
	}{{over, 429, "Too many attempts to log in. Try again later."}, {bad, 400, `the field \"username\" is missing or empty`}, {failed, 503, "Try again later."}} {
		body := string(row.got.Body)
		if row.got.Status != row.status || !strings.Contains(body, fmt.Sprintf(`"status":%d,`, row.status)) || !strings.Contains(body, row.text) {
			t.Errorf("%d, want %d: %s", row.got.Status, row.status, body)
		}
	}
}

// Each line of the error begins with the name of the field.
func TestEveryErrorOfResilienceNamesTheField(t *testing.T) {
	_, err := login.NewGuard(login.Config{Field: "username", Store: newShared(t, core.MemoryConfig{}), Resilience: resilient.Config{Timeout: -1, Failures: -1}})
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "field Resilience: ") {
			t.Errorf("%q", line)
		}
	}
	if len(lines) < 2 {
		t.Errorf("one line: %v", err)
	}
}
