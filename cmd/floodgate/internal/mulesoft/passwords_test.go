package mulesoft_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
)

// No error quotes a password, and the policy file has none.
func TestNoErrorOfImportShowsAPassword(t *testing.T) {
	const marker = "HUNTER2"
	for redis, want := range map[string]string{
		"{address: 'redis://u:HUNTER2@h:6379'}":                                          `store.redis.address: "...@h:6379": is a URL: want host:port (write the host and the port alone`,
		"{address: 'u:HUNTER2@h:6379'}":                                                  `store.redis.address: "...@h:6379": has an @: want host:port`,
		"{address: 'h:6379', password: HUNTER2}":                                         "",
		"{address: 'h:1', DB: 'u:HUNTER2@h'}":                                            "store.redis.db",
		"{address: 'h:1', password: |HUNTER2}":                                           "is no YAML",
		"{address: 'h:1', password: HUNTER2, password: HUNTER2, HUNTER2: 1, HUNTER2: 2}": "is no YAML: mapping key ... already defined",
	} {
		result, err := mulesoft.Import([]byte("spec: {sharedStorage: {redis: " + redis + "}}\n---\n" + flex))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", redis, err, want)
		}
		if err != nil && strings.Contains(err.Error(), marker) || strings.Contains(string(result.Text), marker) {
			t.Errorf("%s: %v writes %s", redis, err, result.Text)
		}
	}
}
