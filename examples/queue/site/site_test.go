package site

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// direct sends requests to a handler without a connection.
type direct struct{ http.Handler }

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// crowdOf sends a crowd and returns its results by their numbers.
func crowdOf(t *testing.T, s http.Handler, user string) map[int]Result {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/crowd", strings.NewReader("user="+user))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	all := map[int]Result{}
	for d := json.NewDecoder(w.Body); d.More(); {
		var one Result
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all[one.Number] = one
	}
	return all
}

// Three run at once, twenty wait in the order in which they came, seven are denied; another
// user has a line of its own.
func TestTheLineOfEachUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send := &direct{}
		s := core.Must(New(send))
		defer s.Close() //nolint:errcheck // the test is over
		send.Handler = s
		var both sync.WaitGroup
		for _, user := range []string{"ann", "bob"} {
			both.Go(func() {
				all := crowdOf(t, s, user)
				for i := 1; i <= crowdSize; i++ {
					r := all[i]
					round := int64((i - 1) / 3) // each takes the slot of the one three before it
					want := Result{Number: i, Sent: int64(i-1) * apart.Milliseconds(), Status: http.StatusOK}
					want.Ran = 250
					if i > 3 {
						want.Waited = round * (reportTakes - 3*apart).Milliseconds()
					}
					if want.Took = want.Waited + want.Ran; i > 23 {
						want = Result{Number: i, Sent: want.Sent, Status: http.StatusTooManyRequests}
					}
					if r != want {
						t.Errorf("%s: %+v, want %+v", user, r, want)
					}
				}
			})
		}
		both.Wait()
	})
}

// A request without a user is rejected, and so is a crowd that another site sends. Nobody waits for more than two seconds.
func TestWhatTheSiteRejects(t *testing.T) {
	s := core.Must(New(http.DefaultTransport))
	defer s.Close() //nolint:errcheck // the test is over
	for route, want := range map[string]int{"GET /report": http.StatusBadRequest, "POST /crowd": http.StatusForbidden} {
		method, path, _ := strings.Cut(route, " ")
		r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d, want %d", route, w.Code, want)
		}
	}
	if wait := s.limits.Policies()[0].Wait; wait != 2*time.Second {
		t.Errorf("a request waits for %v at most", wait)
	}
}
