package httprequest

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// Watcher learns the status of a response.
type Watcher struct{ status int }

// Outcome returns the status that the client saw; where nothing has been
// written, the one that it will see.
func (s *Watcher) Outcome(panicked bool) int {
	switch {
	case s.status != 0:
		return s.status
	case panicked:
		return http.StatusInternalServerError
	default:
		return http.StatusOK
	}
}

func (s *Watcher) set(status int) {
	// An informational response is not the last one; 101 is.
	if s.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status = status
	}
}

// Wrap returns w with the interfaces that it has, and no others.
func (s *Watcher) Wrap(w http.ResponseWriter) http.ResponseWriter {
	return httpsnoop.Wrap(complete(w), httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				next(code) // panics where it is no status
				s.set(code)
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
