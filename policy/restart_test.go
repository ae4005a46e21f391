package policy_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/policy"
)

// The name, the store and the place of local counters cannot change while a program
// runs. The error says where the file has changed.
func TestChangesThatNeedARestart(t *testing.T) {
	const rest = "\npolicies: [{name: a, limits: 1/h}]"
	const before = "name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1'}}" + rest
	for text, want := range map[string]string{
		before: "",
		"name: other\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1'}}" + rest:                    "f: name: has changed (another name needs a restart: it names the counters)",
		"name: n\nlocal: {max-keys: 11}\nstore: {redis: {address: 'a:1'}}" + rest:                        "f: local.max-keys: has changed (another number needs a restart)",
		"name: n\nlocal: {max-keys: 10}" + rest:                                                          "f: store: has changed (another store needs a restart)",
		"name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1', timeout: 1s}}" + rest:           "f:3:8: store: has changed (another store needs a restart)",
		"name: n\nlocal: {max-keys: 10}\nstore: {memcached: {servers: 'a:1'}}" + rest:                    "f:3:8: store: has changed (another store needs a restart)",
		"name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1'}, instances: 2}" + rest:          "f:3:8: store: has changed (another store needs a restart)",
		"name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: 'a:1'}, on-failure: fail-open}" + rest: "f:3:8: store: has changed (another store needs a restart)",
		// The same store, with the defaults written out.
		"name: n\nlocal: {max-keys: 10}\nstore: {redis: {address: [\"a:1\"], db: 0, timeout: 100ms}, instances: 1, remember-denials: true}" + rest: "",
	} {
		set, err := policy.Parse("f", []byte(before))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := set.Replace([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\nsays %q\nwant %q", text, got, want)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}
