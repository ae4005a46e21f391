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

// Watcher records the status of a response, and whether the request's context had ended
// when the response began. It is used by one goroutine at a time, as a response writer is.
type Watcher struct {
	ctx    context.Context //nolint:containedctx // its state is read when the handler writes
	status int
	ended  bool
	w      http.ResponseWriter
	server server // w, if it is the server's

	// Decision is the request's. A connection that is taken over holds its leases.
	Decision core.Decision
}

// NewWatcher returns a Watcher for the response to a request with this context, and this
// decision.
func NewWatcher(ctx context.Context, d *core.Decision) *Watcher {
	return &Watcher{ctx: ctx, Decision: *d}
}

// Outcome returns the outcome of the request after the handler has returned. after is the
// context that the request has then. failed is the error that the handler returned, or
// nil.
func (s *Watcher) Outcome(after context.Context, panicked bool, failed error, header func(string) string) core.Outcome {
	r := outcome.Response{Status: s.status, Ended: s.ended, Panicked: panicked, Header: header}
	if s.status == 0 {
		r.Ended = outcome.Ended(s.ctx, after) || outcome.IsContextError(failed)
	}
	return r.Outcome()
}

func (s *Watcher) set(status int) {
	// A status below 200 does not end the response, except 101.
	if s.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status, s.ended = status, s.ctx.Err() != nil
	}
}

// Missed records a status that a handler has written past the Watcher, to a writer that
// the Watcher's wraps. It does nothing if the Watcher has recorded a status.
func (s *Watcher) Missed(status int) { s.set(status) }

// wrapOther is Wrap for a writer of the kind other.
func (s *Watcher) wrapOther(w http.ResponseWriter) http.ResponseWriter {
	return httpsnoop.Wrap(w, httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				next(code) // panics if code is not a status
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
				return s.hijacked(next())
			}
		},
	})
}
