package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// A file says whether denials are remembered in the process.
func TestRememberDenials(t *testing.T) {
	redis, memcached := redistest.Start(t), memcachedtest.Start(t)
	commands := func() int {
		n := 0
		for line := range strings.Lines(redis.MustDo("info", "commandstats")) {
			var calls int
			if _, err := fmt.Sscanf(strings.TrimSpace(line), "cmdstat_evalsha:calls=%d", &calls); err == nil {
				n = calls
			}
		}
		return n
	}
	gets := func() int {
		for line := range strings.Lines(memcached.All("stats")) {
			var n int
			if _, err := fmt.Sscanf(strings.TrimSpace(line), "STAT cmd_get %d", &n); err == nil {
				return n
			}
		}
		return 0
	}
	for _, remember := range []bool{true, false} {
		for store, asked := range map[string]func() int{
			`redis: {address: "` + redis.Addr + `", timeout: 5s}`:           commands,
			`memcached: {servers: ["` + memcached.Addr + `"], timeout: 5s}`: gets,
		} {
			redis.MustDo("flushall")
			memcached.MustDo("flush_all")
			s := instance(t, fmt.Sprintf("store: {%s, on-failure: fail-closed, remember-denials: %v}%s", store, remember, sharedAndLocal))
			for range 4 {
				s.send("GET", "/shared")
			}
			before := asked()
			for range 1000 {
				if code := s.send("GET", "/shared").Code; code != 429 {
					t.Fatalf("status %d", code)
				}
			}
			if n := asked() - before; remember && n > 500 || !remember && n < 1000 {
				t.Errorf("%s, remember-denials %v: 1000 denied requests asked the store %d times", store, remember, n)
			}
		}
	}
}
