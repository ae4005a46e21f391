package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"

	"github.com/floodgate-go/floodgate/core"
)

// serveAndSettle runs the handler and reports what became of the request. A
// panic of the handler goes on with its own stack: it is not recovered here.
func (h *handler) serveAndSettle(w http.ResponseWriter, r *http.Request, d core.Decision) {
	watched := &watcher{}
	panicked := true
	defer func() {
		o := core.Outcome{Status: watched.outcome(panicked), Panicked: panicked, Header: w.Header().Get}
		h.checker.Settle(request{r}, d, o)
	}()
	h.next.ServeHTTP(watched.wrap(w), r)
	panicked = false
}

// watcher learns the status of a response.
type watcher struct{ status int }

func (s *watcher) outcome(panicked bool) int {
	switch {
	case s.status != 0:
		return s.status
	case panicked:
		return http.StatusInternalServerError
	default:
		return http.StatusOK
	}
}

func (s *watcher) set(status int) {
	// An informational response is not the last one; 101 is.
	if s.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status = status
	}
}

// wrap returns w with the interfaces that it has, and no others.
func (s *watcher) wrap(w http.ResponseWriter) http.ResponseWriter {
	return httpsnoop.Wrap(w, httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				s.set(code)
				next(code)
			}
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(b []byte) (int, error) {
				s.set(http.StatusOK)
				return next(b)
			}
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(src io.Reader) (int64, error) {
				s.set(http.StatusOK)
				return next(src)
			}
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				s.set(http.StatusOK)
				next()
			}
		},
		Hijack: func(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) {
				conn, rw, err := next()
				if err == nil {
					s.set(http.StatusSwitchingProtocols)
				}
				return conn, rw, err
			}
		},
	})
}
