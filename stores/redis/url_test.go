package redisstore_test

import (
	"context"
	"errors"
	"net/url"
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
		"rediss://127.0.0.1:7000":                                     func(o *redis.Options) bool { return o.TLSConfig != nil },
		"unix:///run/redis.sock?db=2":                                 func(o *redis.Options) bool { return o.Network == "unix" && o.Addr == "/run/redis.sock" && o.DB == 2 },
		"unix:///run/re%40dis.sock":                                   func(o *redis.Options) bool { return o.Addr == "/run/re@dis.sock" && o.Username == "" },
		"unix://u:p@/run/re%40dis.sock":                               func(o *redis.Options) bool { return o.Addr == "/run/re@dis.sock" && o.Username == "u" },
		"redis://h:1?client_name=a%40b":                               func(o *redis.Options) bool { return o.ClientName == "a@b" },
		"redis+sentinel://u:p@h:1/0?master=m&sentinel_password=a%40b": func(o *redis.Options) bool { return o.Username == "u" && o.Password == "p" },
		"redis://@127.0.0.1:7000":                                     func(o *redis.Options) bool { return o.Addr == "127.0.0.1:7000" && o.Username == "" && o.Password == "" },
		"redis://127.0.0.1?pool_size=77":                              func(o *redis.Options) bool { return o.PoolSize == 77 && o.Addr == "127.0.0.1:6379" },
	} {
		if o := optionsOf(t, text); !check(&o) {
			t.Errorf("%s: %+v", text, o)
		}
	}
	c := core.Must(redisstore.NewClient("rediss+cluster://10.0.0.1:7000?addr=10.0.0.2:7001&addr=10.0.0.3:7002"))
	defer c.Close() //nolint:errcheck // of no interest any more
	o := c.(*redis.ClusterClient).Options()
	if !slices.Equal(o.Addrs, []string{"10.0.0.1:7000", "10.0.0.2:7001", "10.0.0.3:7002"}) || o.TLSConfig == nil {
		t.Errorf("%+v", o)
	}
}

// A password with a character that is not escaped, or at a place where none is read, is an error that says
// what to write. No error quotes a part of a password.
func TestWrongURLs(t *testing.T) {
	wrong := map[string]string{
		"":                                      `scheme ""`,
		"http://127.0.0.1":                      `scheme "http"`,
		"redis://:hunter2@127.0.0.1:%zz":        "cannot be read",
		"redis://:hunter2@127.0.0.1/nonsense":   "database number",
		"redis://:hunter2@127.0.0.1/?colour=2":  "colour",
		"redis+cluster://:hunter2@a?colour=2":   "colour",
		"redis+sentinel://:hunter2@a:1/0":       `"master" is missing`,
		"redis+sentinel://a/x?master=m":         `database number: "x"`,
		"redis+sentinel://a/0?master=m&color=2": "want no parameters but",
		"redis://:hunter2\x7f@127.0.0.1":        "cannot be read",
	}
	for _, text := range []string{
		"redis://:abcHUNTER/2def@10.0.0.1:6379/0", "redis://app:HUNTER#2@10.0.0.1:6379", "redis://app:1#HUNTER", "redis://app:1?HUNTER@10.0.0.1:6379",
		"redis+sentinel://a:1/HUNTER@h?master=m", "redis://u:50%HUNTER@h:1", "redis://u:HUNTER<@h:1", "unix://u:/HUNTER@/run/redis.sock",
		"redis://u:HUNTER@h:1@x:y", "redis://u:p@HUNTER@h:1", "redis://:HUNTER", "u:HUNTER@h:6379",
		"redis+cluster://h:1?addr=u:HUNTER@h:2", "redis+cluster://h:1?addr=u:HUNTER%40h:2", "redis+sentinel://h?master=m&sentinel_password=%HUNTER",
	} {
		wrong[text] = "%2F for /, %23 for #, %3F for ?, %25 for % and %40 for @"
	}
	for text, says := range wrong {
		_, err := redisstore.NewClient(text)
		if !errors.Is(err, core.ErrConfig) || !strings.HasPrefix(err.Error(), "floodgate: configuration: Redis URL: ") || !strings.Contains(err.Error(), says) || strings.Contains(strings.ToUpper(err.Error()), "HUNTER") {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// optionsOf returns the options of a URL's client that all kinds of clients have.
func optionsOf(t *testing.T, text string) redis.Options {
	client, err := redisstore.NewClient(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer client.Close() //nolint:errcheck // nothing was sent
	if c, ok := client.(*redis.Client); ok {
		return *c.Options()
	}
	o := client.(*redis.ClusterClient).Options()
	return redis.Options{Username: o.Username, Password: o.Password, DialerRetries: o.DialerRetries, ContextTimeoutEnabled: o.ContextTimeoutEnabled}
}

// Escaped passwords are read.
func TestPasswordsThatAreEscaped(t *testing.T) {
	const password = "a/b#c?d%e@f:g ü"
	user := url.UserPassword("a/b", password).String()
	for _, scheme := range []string{"redis", "rediss", "redis+cluster", "rediss+cluster"} {
		if o := optionsOf(t, scheme+"://"+user+"@h:1"); o.Username != "a/b" || o.Password != password {
			t.Errorf("%s: %q, %q", scheme, o.Username, o.Password)
		}
	}
}

// Each kind of URL finds its servers.
func TestURLsOfServers(t *testing.T) {
	t.Parallel()
	failover := redistest.StartFailover(t)
	cluster := redistest.StartCluster(t, 3).Addrs()
	for _, text := range []string{
		"redis://" + failover.Primary.Addr + "/0",
		"redis+cluster://" + cluster[0] + "?addr=" + cluster[1],
		"redis+sentinel://" + failover.Sentinel.Addr + "/0?master=" + failover.Name,
	} {
		c := core.Must(redisstore.NewClient(text))
		if err := redisstore.New(c, redisstore.Timeout(patience)).Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		_ = c.Close()
	}
}

// A client of a URL dials once, unless the URL says more, so that the error tells that nobody listens, and
// not that the time is up. It ends a command in time.
func TestAClientOfAURLDialsOnce(t *testing.T) {
	for text, want := range map[string]int{
		"redis://127.0.0.1:1": 1, "unix:///nowhere.sock": 1, "redis+sentinel://127.0.0.1:1/0?master=m": 1, "redis+cluster://127.0.0.1:1?addr=[::1]:1": 1,
		"redis+cluster://127.0.0.1:1?dialer_retries=3": 3,
	} {
		if o := optionsOf(t, text); o.DialerRetries != want || !o.ContextTimeoutEnabled {
			t.Errorf("%s: dialed %d times, in time %v", text, o.DialerRetries, o.ContextTimeoutEnabled)
		}
	}
	client := core.Must(redisstore.NewClient("redis://127.0.0.1:1"))
	defer client.Close() //nolint:errcheck // nothing was sent
	var failed *redisstore.Error
	if err := redisstore.New(client).Ping(t.Context()); !errors.As(err, &failed) || failed.Unknown || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want one that says that nobody listens", err)
	}
}

// No part of a user or a password is in an error, whatever its bytes, wherever it
// stands, and whether it is escaped or not.
func FuzzPasswordsInErrors(f *testing.F) {
	const marker = "HUNTER"
	for _, s := range []string{"", "/", "#", "?", "%", "%zz", "@", ":", "/@", "?addr=", "@h/?addr=", "?client_name=", "\x7f", "\xff", " ", "[", "://", "?dial_timeout=", "/?x=y&", "1/", ":1#"} {
		f.Add(s, "", byte(0))
		f.Add("", s, byte(1))
		f.Add(s, s, byte(2))
	}
	urls := []string{
		"redis://:PASSWORD@127.0.0.1:6379/0", "redis://u:PASSWORD@h:x", "redis://PASSWORD:p@h/x", "rediss://u:PASSWORD@h:1?colour=2", "unix://u:PASSWORD@/run/redis.sock?db=x",
		"redis+cluster://u:PASSWORD@h:1?addr=h", "redis+cluster://h:1?addr=u:PASSWORD@h:1", "redis+sentinel://u:PASSWORD@h:1/0", "redis+sentinel://h:1/x?master=m&sentinel_password=PASSWORD",
		"redis+sentinel://h:1/0?master=m&addr=u:PASSWORD@h:2&x=y", "http://u:PASSWORD@h", "u:PASSWORD@h:6379", "redis:PASSWORD@h:6379",
	}
	f.Fuzz(func(t *testing.T, before, behind string, form byte) {
		password := before + marker + behind
		switch form % 3 {
		case 1:
			password = url.QueryEscape(password)
		case 2:
			password = url.PathEscape(password)
		}
		for _, text := range urls {
			text = strings.Replace(text, "PASSWORD", password, 1)
			c, err := redisstore.NewClient(text)
			if err == nil {
				_ = c.Close()
			} else if strings.Contains(strings.ToUpper(err.Error()), marker) || !errors.Is(err, core.ErrConfig) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
