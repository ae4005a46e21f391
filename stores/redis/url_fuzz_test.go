package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// Whatever the text, there is a client or an error of the kind that is
// promised, and no password in it.
func FuzzNewClient(f *testing.F) {
	for _, s := range []string{
		"redis://:hunter2@127.0.0.1:6379/0", "rediss://127.0.0.1", "unix:///run/redis.sock?db=1", "redis+cluster://a:1?addr=b:2",
		"redis+sentinel://:hunter2@a/0?master=m&addr=b", "redis://:hunter2@[::1]:x/", "http://", "redis://:hunter2@a/0?dial_timeout=x", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := redisstore.NewClient(text)
		if err == nil {
			_ = c.Close()
			return
		}
		if !errors.Is(err, core.ErrConfig) {
			t.Errorf("%q: %v does not wrap ErrConfig", text, err)
		}
		if _, rest, found := strings.Cut(text, "://:"); found && len(rest) > 8 && strings.HasPrefix(rest, "hunter2@") && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
