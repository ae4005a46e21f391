package policy

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// The timeout of the server bounds the exchanges of a synced store.
func TestTheTimeoutOfASyncedStoreIsItsServers(t *testing.T) {
	for name, s := range map[string]*file.Synced{
		"redis":    {Redis: &file.Redis{Addresses: []string{"127.0.0.1:1"}, Timeout: 7 * time.Second}},
		"postgres": {Postgres: &file.Postgres{Address: "127.0.0.1:1", Timeout: 7 * time.Second}},
	} {
		m := &mistakes{file: "f"}
		_, closeBackend, timeout := openBackend(m, s)
		if m.found() {
			t.Fatalf("%s: %v", name, m.errs)
		}
		if timeout != 7*time.Second {
			t.Errorf("%s: %v, want 7s", name, timeout)
		}
		if err := closeBackend(); err != nil {
			t.Error(err)
		}
	}
}
