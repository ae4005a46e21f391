package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// The hits that the command grants are there for the service.
func TestAGrantIsThereForTheService(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies:\n  - {name: api, key: 'query[\"k\"]', limits: '10/h fixed_window, 30/d fixed_window'}\n")
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close() //nolint:errcheck // the test is over
	set, err := policy.Load(path, policy.WithStore(redisstore.New(client, redisstore.Timeout(5*time.Second), redisstore.AnotherInstance())))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // the test is over
	ann := core.Hit{Rule: "api", Key: "ann"}
	if d, err := set.Limiter().Take(context.Background(), 10, ann); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	flags := []string{"grant", path, "--store", "redis://" + server.Addr + "/0", "--policy", "api", "--key", "ann", "--hits"}
	if out, _ := expect(t, 0, "", append(flags, "4")...); !regexp.MustCompile(`10 per 1h .* 6 +4 .*\n.*30 per .* 6 +24 `).MatchString(out) {
		t.Error(out)
	}
	if d, err := set.Limiter().Take(context.Background(), 4, ann); err != nil || !d.Allowed {
		t.Errorf("%v, %v", d, err)
	}
	for _, row := range [][2]string{{"1", `10 per 1h .* 9 +1 `}, {"2147483647", `10 per 1h .* 0 +10 `}} {
		if out, _ := expect(t, 0, "", append(flags, row[0])...); !regexp.MustCompile(row[1]).MatchString(out) {
			t.Errorf("%s: %s", row[0], out)
		}
	}
	for _, n := range []string{"0", "-1", "2147483648"} {
		if _, errs := expect(t, 2, "", append(flags, n)...); !strings.Contains(errs, "--hits: "+n+": must be from 1 to 2147483647") {
			t.Errorf("%s: %s", n, errs)
		}
	}
}
