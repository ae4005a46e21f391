package file

import (
	"strings"
	"testing"
)

// A window that a space separates from its number is written together, whatever
// digit the number ends in. Limits text without a limit, or with one only, is
// told the form of a limit.
func TestHintsForLimitsText(t *testing.T) {
	for item, want := range map[string]string{
		"5/15 m": "write 5/15m, without a space", "5/9 m": "write 5/9m, without a space", "5/10 m": "write 5/10m, without a space",
		"5 / 15 m": "write 5/15m, without a space", "5/ 15 m": "write 5/15m, without a space",
		"60 per minute gcra": "gcra is called token_bucket here", "60 per 5 minutes gcra": "gcra is called token_bucket here", "60 / s gcra": "gcra is called token_bucket here",
		"5 per": formOfALimit, "5 per 5": formOfALimit, "5 a minute": formOfALimit,
		"5/m fixed-windw": "did you mean fixed_window?", "5/m fixed_window fastest": "the algorithms are sliding_window, fixed_window, bucketed_window, sliding_log, token_bucket or in_flight",
		"5/m sliding_log": formOfALimit, "5/m burst=x": formOfALimit,
		"": formOfALimit, " ": formOfALimit, "5": formOfALimit, "x": formOfALimit, "5 m": formOfALimit,
	} {
		if got := limitHint(item, "what is wrong"); got != want {
			t.Errorf("%q: %q, want %q", item, got, want)
		}
	}
	if got := limitHint("0/s", "A field of a limit"); got != "" {
		t.Errorf("a limit that has been understood gets the hint %q", got)
	}
	if got := limitHint("0/s burst=1", "Burst: 1: is wrong"); got != "" {
		t.Errorf("a limit that has been understood gets the hint %q", got)
	}
}

// A prefix that two lists have is an error, and no doubt besides.
func TestAPrefixThatTwoListsHave(t *testing.T) {
	_, problems := Read([]byte("policies: [{name: a, only: [10.0.0.0/8], deny: [10.0.0.0/8], limits: 1/s}]"), Options{})
	var about []string
	for _, p := range problems {
		if strings.Contains(p.Text, "10.0.0.0/8") {
			about = append(about, p.Text)
		}
	}
	if len(about) != 1 || !strings.Contains(about[0], "only has it too") {
		t.Errorf("%q", about)
	}
}

// Every difference between two store sections makes another identity, so that a
// reload opens another store. Equal sections have equal identities.
func TestIdentities(t *testing.T) {
	stores := map[string]string{}
	for _, text := range []string{
		"redis: {address: 'a:1'}", "redis: {address: 'b:1'}", "memcached: {servers: ['a:1']}", "memcached: {servers: ['b:1']}",
		"synced: {redis: {address: 'a:1'}}", "synced: {redis: {address: 'b:1'}}", "synced: {redis: {address: 'a:1'}, interval: 1s}",
		"synced: {postgres: {address: 'a:1', user: u, database: d}}", "synced: {postgres: {address: 'b:1', user: u, database: d}}",
		"synced: {postgres: {address: 'a:1', user: v, database: d}}", "synced: {postgres: {address: 'a:1', user: u, database: e}}",
		"synced: {postgres: {address: 'a:1', user: u, password: p, database: d}}", "synced: {postgres: {address: 'a:1', user: u, database: d, timeout: 2s}}",
	} {
		read := func() string {
			return readFine(t, "store: {"+text+"}\npolicies: [{name: a, limits: 1/s aligned}]").Store.Identity()
		}
		id := read()
		if id == "" || id != read() {
			t.Errorf("%s: the identities %q and %q", text, id, read())
		}
		if other := stores[id]; other != "" {
			t.Errorf("%s has the identity of %s", text, other)
		}
		stores[id] = text
	}
}
