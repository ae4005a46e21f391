package login_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// Normalize does not change its own result. Spellings that differ in ASCII letter case or in
// white space at the ends have the same result.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"alice", " ALICE ", "ａｌｉｃｅ", "e\u0301", "ß", "İ", "ﬀ", "\xff", "K", "a\u200bb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := login.Normalize(s)
		if again := login.Normalize(n); again != n {
			t.Errorf("%q becomes %q, and that %q", s, n, again)
		}
		if !strings.Contains(s, "\xff") && strings.ToValidUTF8(s, "") == s && login.Normalize(" "+s+"\t") != n {
			t.Errorf("%q with white space is another account", s)
		}
	})
}

// No text in a cookie or in the header Authorization makes the guard panic.
func FuzzCredentials(f *testing.F) {
	guard := core.Must(login.NewGuard(login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Secrets: [][]byte{secret}, Attempts: core.PerMinute(core.MaxQuota), AccountFailures: core.Limit{Quota: 0, Window: time.Hour}}))
	good, err := guard.DeviceCookie(context.Background(), "alice")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.Value[:len(good.Value)-1]+"!", "Basic YWxpY2U6eA==")
	f.Add("", "Basic")
	f.Add(strings.Repeat("A", 75), "bAsIc \x00")
	f.Fuzz(func(t *testing.T, cookie, authorization string) {
		r := form("203.0.113.1", "")
		r.header = http.Header{"Cookie": {login.DefaultCookieName + "=" + cookie}, "Authorization": {authorization}}
		if d := guard.Check(r); d.Allowed {
			t.Errorf("cookie %q is believed", cookie)
		}
	})
}
