package readers_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/internal/readers/attack"
)

// Requests of the parts that attacks are made of: whatever a handler reads was
// counted, or the request was refused.
func TestWhateverAHandlerReadsWasCounted(t *testing.T) {
	all := append(logins(attack.Guarded(t, attack.ByField("username"))), nested(attack.Guarded(t, attack.ByField("user[name]")))...)
	all = append(all, queries()...)
	rapid.Check(t, func(t *rapid.T) {
		raw := attack.Draw(t)
		for _, s := range all {
			if err := s.Try(raw); err != nil {
				t.Fatalf("%v\n%q", err, raw)
			}
		}
	})
}

func TestWhateverCookieAHandlerReadsWasCounted(t *testing.T) {
	cookieNames := []string{"sid", "sid", "sid", "SID", "sid[]", "[sid]", " sid", "\tsid", "sid ", "s%69d", "a", ""}
	cookieValues := []string{"abc", "abd", "%61bc", "a+b", "%zz", "%", `"abc"`, `"ab c"`, ` "abc"`, " abc", "abc ", "a b", `a"b`, `a\b`, "a,b", "\tabc", "é", "", "a=b", `"`}
	all := cookies()
	rapid.Check(t, func(t *rapid.T) {
		var lines strings.Builder
		for range rapid.IntRange(0, 2).Draw(t, "lines") {
			lines.WriteString("Cookie: ")
			for range rapid.IntRange(0, 3).Draw(t, "cookies") {
				lines.WriteString(pick(t, "name", cookieNames) + pick(t, "equals", []string{"=", "=", "=", ""}) + pick(t, "value", cookieValues) + pick(t, "separator", []string{"; ", "; ", ";", ";;", " ; ", ", "}))
			}
			lines.WriteString("\r\n")
		}
		raw := []byte("GET / HTTP/1.1\r\nHost: a\r\n" + lines.String() + "\r\n")
		for _, s := range all {
			if err := s.Try(raw); err != nil {
				t.Fatalf("%v\n%q", err, raw)
			}
		}
	})
}

func pick(t *rapid.T, what string, from []string) string {
	return rapid.SampledFrom(from).Draw(t, what)
}
