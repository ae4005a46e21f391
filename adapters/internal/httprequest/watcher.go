package httprequest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"

	"github.com/floodgate-go/floodgate/adapters/internal/outcome"
	"github.com/floodgate-go/floodgate/core"
)

// Watcher learns the status of a response, and whether the request's context
// had ended when the response was begun.
type Watcher struct {
	ctx    context.Context //nolint:containedctx // it is asked when the handler writes
	status int
	ended  bool
}

// NewWatcher returns a Watcher for the response to a request with this context.
func NewWatcher(ctx context.Context) *Watcher { return &Watcher{ctx: ctx} }

// Outcome returns what became of the request, when the handler is done. after
// is the context that the request has now. failed is the error that the
// handler returned, nil if none.
func (s *Watcher) Outcome(after context.Context, panicked bool, failed error, header func(string) string) core.Outcome {
	r := outcome.Response{Status: s.status, Ended: s.ended, Panicked: panicked, Header: header}
	if s.status == 0 {
		r.Ended = outcome.Ended(s.ctx, after) || outcome.IsContextError(failed)
	}
	return r.Outcome()
}

func (s *Watcher) set(status int) {
	// An informational response is not the last one; 101 is.
	if s.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status, s.ended = status, s.ctx.Err() != nil
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
