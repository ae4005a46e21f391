package login_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
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

// call is a remote procedure call, which has no body.
type call struct{ *request }

func (r call) Body(int) ([]byte, error) { return nil, requestlog.ErrNoBody }

func (r call) Value(key any) any {
	if key == (requestlog.NoBodyKey{}) {
		return requestlog.ErrNoBody
	}
	return nil
}

// A guard with Config.Field tells the client of a remote procedure call that the field is
// read from bodies only, and not that the server has failed.
func TestAFieldIsNotReadFromARemoteProcedureCall(t *testing.T) {
	guard, err := login.NewGuard(login.Config{Field: "username", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close() //nolint:errcheck // it has nothing of its own but counters
	d := guard.Check(call{form("203.0.113.1", "alice")})
	var bad *core.BadRequestError
	if !errors.As(d.Err, &bad) || !strings.Contains(bad.Detail, "use a key function that reads the message") {
		t.Errorf("the attempt ends with %v, %v", d, d.Err)
	}
}
