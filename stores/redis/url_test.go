package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func TestURLs(t *testing.T) {
	for text, check := range map[string]func(c *redis.Options) bool{
		"redis://bob:secret@127.0.0.1:7000/3": func(o *redis.Options) bool {
			return o.Addr == "127.0.0.1:7000" && o.DB == 3 && o.Username == "bob" && o.Password == "secret" && o.TLSConfig == nil
		},
		"rediss://127.0.0.1:7000":        func(o *redis.Options) bool { return o.TLSConfig != nil },
		"unix:///run/redis.sock?db=2":    func(o *redis.Options) bool { return o.Network == "unix" && o.Addr == "/run/redis.sock" && o.DB == 2 },
		"redis://127.0.0.1?pool_size=77": func(o *redis.Options) bool { return o.PoolSize == 77 && o.Addr == "127.0.0.1:6379" },
	} {
		c, err := redisstore.NewClient(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if o := c.(*redis.Client).Options(); !check(o) {
			t.Errorf("%s: %+v", text, o)
		}
		_ = c.Close()
	}
	c, err := redisstore.NewClient("rediss+cluster://10.0.0.1:7000?addr=10.0.0.2:7001&addr=10.0.0.3:7002")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // of no interest any more
	o := c.(*redis.ClusterClient).Options()
	if !slices.Equal(o.Addrs, []string{"10.0.0.1:7000", "10.0.0.2:7001", "10.0.0.3:7002"}) || o.TLSConfig == nil {
		t.Errorf("%+v", o)
	}
}

func TestWrongURLs(t *testing.T) {
	for text, says := range map[string]string{
		"":                                      `scheme ""`,
		"http://127.0.0.1":                      `scheme "http"`,
		"redis://:hunter2@127.0.0.1:%zz":        "port",
		"redis://:hunter2@127.0.0.1/nonsense":   "database number",
		"redis://:hunter2@127.0.0.1/?colour=2":  "colour",
		"redis+cluster://:hunter2@a?colour=2":   "colour",
		"redis+sentinel://:hunter2@a:1/0":       `"master" is missing`,
		"redis+sentinel://a/x?master=m":         `database "x"`,
		"redis+sentinel://a/-1?master=m":        `database "-1"`,
		"redis+sentinel://a/0?master=m&color=2": `parameter "color"`,
		"redis+sentinel://a/0?master=m&master=": `parameter "master" is given twice`,
		"redis://:hunter2\x7f@127.0.0.1":        "control character",
	} {
		_, err := redisstore.NewClient(text)
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// Each kind of URL finds its servers.
func TestURLsOfServers(t *testing.T) {
	failover := redistest.StartFailover(t)
	cluster := redistest.StartCluster(t, 3).Addrs()
	for _, text := range []string{
		"redis://" + failover.Primary.Addr + "/0",
		"redis+cluster://" + cluster[0] + "?addr=" + cluster[1],
		"redis+sentinel://" + failover.Sentinel.Addr + "/0?master=" + failover.Name,
	} {
		c, err := redisstore.NewClient(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := redisstore.New(c, redisstore.Timeout(patience)).Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		_ = c.Close()
	}
}

// A client of a URL dials once, so that the error tells that nobody listens, and
// not that the time is up.
func TestAClientOfAURLDialsOnce(t *testing.T) {
	for text, dials := range map[string]func(redis.UniversalClient) int{
		"redis://127.0.0.1:1":                      func(c redis.UniversalClient) int { return c.(*redis.Client).Options().DialerRetries },
		"unix:///nowhere.sock":                     func(c redis.UniversalClient) int { return c.(*redis.Client).Options().DialerRetries },
		"redis+sentinel://127.0.0.1:1/0?master=m":  func(c redis.UniversalClient) int { return c.(*redis.Client).Options().DialerRetries },
		"redis+cluster://127.0.0.1:1?addr=[::1]:1": func(c redis.UniversalClient) int { return c.(*redis.ClusterClient).Options().DialerRetries },
	} {
		client, err := redisstore.NewClient(text)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close() //nolint:errcheck // nothing was sent
		if n := dials(client); n != 1 {
			t.Errorf("%s: dialed %d times", text, n)
		}
	}
	client, err := redisstore.NewClient("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // nothing was sent
	var failed *redisstore.Error
	if err := redisstore.New(client).Ping(t.Context()); !errors.As(err, &failed) || failed.Class != redisstore.ClassUnreachable {
		t.Errorf("%v, want %v", err, redisstore.ClassUnreachable)
	}
}
