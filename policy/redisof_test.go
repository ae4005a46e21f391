package policy_test

import (
	"crypto/tls"
	"testing"

	"github.com/redis/go-redis/v9"

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

// TLS of a cluster is TLS of each of its servers.
func TestTheTLSOfARedis(t *testing.T) {
	for fields, want := range map[string]bool{
		"address: 'redis:6379'": false, "address: 'redis:6379', tls: true": true,
		"address: ['a:6379', 'b:6379'], cluster: true": false, "address: ['a:6379', 'b:6379'], cluster: true, tls: true": true,
	} {
		client, _, err := policy.RedisOf("f", []byte("{store: {redis: {"+fields+"}}, policies: [{name: api, limits: 1/m}]}"))
		if err != nil {
			t.Errorf("%s: %v", fields, err)
			continue
		}
		var config *tls.Config
		switch c := client.(type) {
		case *redis.Client:
			config = c.Options().TLSConfig
		case *redis.ClusterClient:
			config = c.Options().TLSConfig
		}
		if (config != nil) != want || want && config.MinVersion < tls.VersionTLS12 {
			t.Errorf("%s: TLS %+v, want %t", fields, config, want)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
