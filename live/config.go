package live

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Config configures a [Page]. The zero value is a page that changes nothing and shows keys as
// hashes.
type Config struct {
	// Instance names this process on the page: "" means the name of the host.
	Instance string
	// Authorize decides whether the client that sent r may do a. who is for the log, such as the
	// name of the user. If err is not nil, the action is denied with status 403. The client does
	// not see the error. Authorize may be called concurrently. nil means that nobody may change
	// anything.
	Authorize func(r *http.Request, a Action) (who string, err error)
	// ShowKey returns the text that the page shows for a key, such as the key itself. The page
	// shows it as text, never as HTML. For "", and without ShowKey, the page shows a hash of the
	// key, and so no addresses and no usernames. ShowKey may be called concurrently.
	ShowKey func(limiter, rule, key string) string
	// Secret is the secret of that hash, of 16 bytes or more. Processes with the same Secret show
	// the same hash for a key. nil means a random one.
	Secret []byte
	// Log gets a line for each action, also for one that Authorize or the store has denied. The
	// line has the key itself, whatever ShowKey returns. nil means slog.Default().
	Log *slog.Logger
}

// Action is what an operator wants to do.
type Action struct {
	// Name is "unblock", "ban" or "forget".
	Name string
	// Limiter and Rule are the names of the limiter and the rule. For "forget", Limiter is the name
	// that was given to [Page.ManageLogin], and Rule is empty.
	Limiter, Rule string
	// Key is the key; for "forget" the username, or the client's address.
	Key string
	// For is how long a "ban" lasts.
	For time.Duration
}

func (c Config) check() (Config, error) {
	if c.Secret == nil {
		c.Secret = make([]byte, 32)
		_, _ = rand.Read(c.Secret) // never fails
	}
	if len(c.Secret) < 16 {
		return c, fmt.Errorf("%w: live: Secret has %d bytes: write 16 or more", core.ErrConfig, len(c.Secret))
	}
	if c.Instance == "" {
		c.Instance, _ = os.Hostname()
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c, nil
}
