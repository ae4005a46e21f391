package policy_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

const marker = "HUNTER2"

// shows parses a file, and returns whether its errors have the marker.
func shows(t *testing.T, text string) (error, bool) {
	t.Helper()
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	defer memory.Close() //nolint:errcheck // it is not used
	set, err := policy.Parse("f", []byte(text), policy.WithStore(memory), policy.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err, strings.Contains(err.Error(), marker)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	return nil, false
}

// A password without quotes, of which YAML makes something else, is in no error.
func TestNoErrorShowsAPassword(t *testing.T) {
	wrong := 0
	for _, before := range []string{"", "!", "!!", "!<", "*", "&", "|", ">", "|9", "%", "@", "`", "'", "\"", "[", "]", "$", "\"\\q", "!!int ", "|\n  ", "a: ", "- "} {
		for _, form := range []string{"store:\n  redis:\n    address: a:1\n    password: %\n", "store: {redis: {address: a:1, password: %}}\n", "store: {synced: {postgres: {address: a:1, user: u, database: d, password: %}}}\n"} {
			if strings.Contains(form, "{") && before == "]" || before == "a: " && !strings.Contains(form, "{") {
				continue // then it is the name of a field
			}
			text := strings.Replace(form, "%", before+marker, 1) + "policies: [{name: a, limits: 1/s aligned}]\n"
			err, shown := shows(t, text)
			if shown {
				t.Errorf("%q: %v", text, err)
			}
			if err != nil {
				wrong++
			}
		}
	}
	if wrong < 20 {
		t.Errorf("%d files have errors: the test says nothing", wrong)
	}
}

// Nothing that stands before an @ in an address is in an error.
func FuzzPasswordsInAddresses(f *testing.F) {
	for _, s := range []string{"", "redis://u:", "redis://:", "u:", "?", "://", "@", "/", "a:1@", strings.Repeat("x", 70)} {
		f.Add(s, "")
		f.Add("postgres://", s)
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, before, behind string) {
		quoted, err := json.Marshal(before + marker + behind + "@h:6379")
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{
			"%", "{redis: %}", "{memcached: %}", "{synced: %}", "{synced: {redis: %}}", "{synced: {postgres: %}}", "{%: 1}", "{redis: {%: 1}}",
			"{redis: {address: %}}", "{redis: {address: [%, %]}}", "{redis: {address: a:1, db: %}}", "{redis: {address: a:1, timeout: %}}", "{redis: {address: a:1, tls: %}}", "{memcached: {servers: [%]}}",
			"{synced: {redis: {address: %}}}", "{synced: {postgres: {address: %, user: u, database: d}}}", "{redis: {address: a:1}, on-failure: %}",
		} {
			text := "store: " + strings.ReplaceAll(form, "%", string(quoted)) + "\npolicies: [{name: a, limits: 1/s aligned}]"
			if err, shown := shows(t, text); err == nil || shown {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
