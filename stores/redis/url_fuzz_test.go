package redisstore_test

import (
	"errors"
	"net/url"
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
