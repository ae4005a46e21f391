package policy_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/policy"
)

// RedisOf gives the policies no functions of the program, and takes a file that needs
// them.
func TestTheRedisOfAFileWithTiersOrUsers(t *testing.T) {
	for _, rest := range []string{"tiers: {default: 3/s, staff: unlimited}", "limits: 3/s, key: user"} {
		client, server, err := policy.RedisOf("f", []byte("{store: {redis: {address: 'redis:6379'}}, policies: [{name: api, "+rest+"}]}"))
		if err != nil || server != "Redis redis:6379, database 0" {
			t.Errorf("%s: %q, %v", rest, server, err)
			continue
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
