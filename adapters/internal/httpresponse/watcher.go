package httpresponse

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/core"
)

// Watcher records the status of a response, and whether the request's context had ended when the
// response began. It is used by one goroutine at a time, as a response writer is.
type Watcher struct {
	ctx    context.Context //nolint:containedctx // its state is read when the handler writes
	status int
	ended  bool
	w      http.ResponseWriter
}

// NewWatcher returns a Watcher for the response to a request with this context.
func NewWatcher(ctx context.Context) *Watcher { return &Watcher{ctx: ctx} }

// Outcome returns the outcome of the request after the handler has returned. after is the context
// that the request has then. failed is the error that the handler returned, or nil.
func (s *Watcher) Outcome(after context.Context, panicked bool, failed error, header func(string) string) core.Outcome {
	r := adapter.Response{Status: s.status, Ended: s.ended, Panicked: panicked, Header: header}
	if s.status == 0 {
		r.Ended = adapter.Ended(s.ctx, after) || adapter.IsContextError(failed)
	}
	return r.Outcome()
}

// Record records a status that a handler has written: the writer of Wrap calls it, and an adapter
// whose handlers can write to the inner writer. The first status counts.
func (s *Watcher) Record(status int) {
	// A status below 200 does not end the response, except 101.
	if s.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status, s.ended = status, s.ctx.Err() != nil
	}
}

// Wrap returns a response writer that calls w and records the status. It implements http.Flusher
// and http.Hijacker if w, or a writer inside w, does. http.ResponseController finds everything else
// with Unwrap. The writer is a pointer to the Watcher, and costs no allocation. Wrap is called once
// for a Watcher.
func (s *Watcher) Wrap(w http.ResponseWriter) http.ResponseWriter {
	s.w = w
	switch flushes, hijacks := can[http.Flusher](w), can[http.Hijacker](w); {
	case flushes && hijacks:
		return fullWriter{flushWriter{writer{s}}}
	case flushes:
		return flushWriter{writer{s}}
	case hijacks:
		return hijackWriter{writer{s}}
	default:
		return writer{s}
	}
}

// can reports whether w, or a writer that it unwraps to, is a T.
func can[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
}

// writer is the writer for a w that neither flushes nor hijacks.
type writer struct{ s *Watcher }

// Unwrap is for http.ResponseController.
func (w writer) Unwrap() http.ResponseWriter { return w.s.w }

// Header implements http.ResponseWriter.
func (w writer) Header() http.Header { return w.s.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (w writer) WriteHeader(status int) {
	w.s.w.WriteHeader(status) // panics if it is no status
	w.s.Record(status)
}

// Write implements http.ResponseWriter.
func (w writer) Write(b []byte) (int, error) {
	w.s.Record(http.StatusOK)
	return w.s.w.Write(b)
}

// WriteString implements io.StringWriter.
func (w writer) WriteString(text string) (int, error) {
	w.s.Record(http.StatusOK)
	return io.WriteString(w.s.w, text)
}

// ReadFrom implements io.ReaderFrom.
func (w writer) ReadFrom(src io.Reader) (int64, error) {
	if r, ok := w.s.w.(io.ReaderFrom); ok {
		w.s.Record(http.StatusOK)
		return r.ReadFrom(src)
	}
	return io.Copy(struct{ io.Writer }{w}, src)
}

// CloseNotify implements http.CloseNotifier, which gin.Context.Stream needs. The channel is nil if
// w does not implement it.
func (w writer) CloseNotify() <-chan bool {
	if c, ok := w.s.w.(http.CloseNotifier); ok { //nolint:staticcheck // deprecated, and in use
		return c.CloseNotify()
	}
	return nil
}

func (w writer) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.s.w).Hijack()
	if err == nil {
		w.s.Record(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

type flushWriter struct{ writer }

// Flush implements http.Flusher.
func (w flushWriter) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController.
func (w flushWriter) FlushError() error {
	w.s.Record(http.StatusOK)
	return http.NewResponseController(w.s.w).Flush()
}

type hijackWriter struct{ writer }

// Hijack implements http.Hijacker.
func (w hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

type fullWriter struct{ flushWriter }

// Hijack implements http.Hijacker.
func (w fullWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }
