package login_test

import (
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// unread is a request whose body must not be read.
type unread struct {
	*request
	t *testing.T
}

func (r unread) Body(most int) ([]byte, error) {
	r.t.Errorf("%d bytes of the body are read", most)
	return r.request.Body(most)
}

// A guard without Config.Field and without PostField reads no body.
func TestTheBodyIsNotReadIfUsernamesComeFromHeaders(t *testing.T) {
	guard, err := login.NewGuard(login.Config{Sources: []core.KeyFunc{login.BasicUser()}})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close() //nolint:errcheck // it has nothing of its own but counters
	r := form("203.0.113.1", "mallory")
	r.header = http.Header{"Authorization": {"Basic YWxpY2U6eA=="}}
	d := guard.Check(unread{r, t})
	if !d.Allowed {
		t.Errorf("the first attempt is denied: %v", d)
	}
	guard.Settle(r, d, core.Outcome{Status: http.StatusUnauthorized})
}
