package policy_test

import (
	"fmt"

	"github.com/floodgate-go/floodgate/policy"
)

func ExampleRedisOf() {
	text := []byte("{store: {redis: {address: 'redis:6379', db: 2}}, policies: [{name: api, key: ip, limits: 3/s}]}")
	client, server, err := policy.RedisOf("limits.yaml", text)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close() //nolint:errcheck // it has connected to nothing
	fmt.Println(server)
	// Output: Redis redis:6379, database 2
}
