package httprequest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/adapters/internal/inflight"
)

// The writers of net/http's server, and those that have no optional methods, get a writer of
// this file with the same methods. It is a pointer to the Watcher, and costs no allocation. All
// others get a writer of httpsnoop, which costs about ten.

// kind is which of them a type of writers gets.
type kind uint8

const (
	other kind = iota
	plain      // no optional methods
	http1      // those of the server's writer for HTTP/1
	http2      // those of the server's writer for HTTP/2
)

// server has the methods that the server's writers for HTTP/1 and HTTP/2 have in common.
type server interface {
	http.ResponseWriter
	io.StringWriter
	http.Flusher
	http.CloseNotifier //nolint:staticcheck // the server's writers have it
	FlushError() error
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	EnableFullDuplex() error
}

var kinds sync.Map // of reflect.Type of writers: a program has few

func kindOf(w http.ResponseWriter) kind {
	t := reflect.TypeOf(w)
	if k, known := kinds.Load(t); known {
		return k.(kind)
	}
	k := findKind(w)
	kinds.Store(t, k)
	return k
}

func findKind(w http.ResponseWriter) kind {
	_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
	_, hijacks := w.(http.Hijacker)
	_, reads := w.(io.ReaderFrom)
	_, pushes := w.(http.Pusher)
	_, common := w.(server)
	switch {
	case unwraps:
		return other
	case common && hijacks && reads && !pushes:
		return http1
	case common && !hijacks && !reads && pushes:
		return http2
	case common || hijacks || reads || pushes || optional(w):
		return other
	default:
		return plain
	}
}

// optional reports whether w has one of the methods of server that http.ResponseWriter does not have.
func optional(w http.ResponseWriter) bool {
	switch w.(type) {
	case io.StringWriter, http.Flusher, http.CloseNotifier, //nolint:staticcheck // as above
		interface{ FlushError() error },
		interface{ SetReadDeadline(t time.Time) error },
		interface{ SetWriteDeadline(t time.Time) error },
		interface{ EnableFullDuplex() error }:
		return true
	default:
		return false
	}
}

// Wrap returns a response writer that calls w and records the status. It implements the
// optional interfaces of w, and those that complete adds. It is called once for a Watcher.
func (s *Watcher) Wrap(w http.ResponseWriter) http.ResponseWriter {
	switch kindOf(w) {
	case plain:
		s.w = w
		return plainWriter{s}
	case http1:
		s.w, s.server = w, w.(server)
		return server1Writer{serverWriter{plainWriter{s}}}
	case http2:
		s.w, s.server = w, w.(server)
		return server2Writer{serverWriter{plainWriter{s}}}
	default:
		return s.wrapOther(complete(w))
	}
}

// plainWriter is for writers of the kind plain.
type plainWriter struct{ s *Watcher }

// Unwrap is for http.ResponseController.
func (p plainWriter) Unwrap() http.ResponseWriter { return p.s.w }

// Header implements http.ResponseWriter.
func (p plainWriter) Header() http.Header { return p.s.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (p plainWriter) WriteHeader(status int) {
	p.s.w.WriteHeader(status) // panics if it is no status
	p.s.set(status)
}

// Write implements http.ResponseWriter.
func (p plainWriter) Write(b []byte) (int, error) {
	p.s.set(http.StatusOK)
	return p.s.w.Write(b)
}

// serverWriter has what the writers of the kinds http1 and http2 have in common.
type serverWriter struct{ plainWriter }

// WriteString implements io.StringWriter.
func (w serverWriter) WriteString(text string) (int, error) {
	w.s.set(http.StatusOK)
	return w.s.server.WriteString(text)
}

// Flush implements http.Flusher.
func (w serverWriter) Flush() {
	w.s.set(http.StatusOK)
	w.s.server.Flush()
}

// FlushError is for http.ResponseController.
func (w serverWriter) FlushError() error {
	w.s.set(http.StatusOK)
	return w.s.server.FlushError()
}

// CloseNotify implements http.CloseNotifier.
func (w serverWriter) CloseNotify() <-chan bool { return w.s.server.CloseNotify() }

// SetReadDeadline is for http.ResponseController.
func (w serverWriter) SetReadDeadline(t time.Time) error { return w.s.server.SetReadDeadline(t) }

// SetWriteDeadline is for http.ResponseController.
func (w serverWriter) SetWriteDeadline(t time.Time) error { return w.s.server.SetWriteDeadline(t) }

// EnableFullDuplex is for http.ResponseController.
func (w serverWriter) EnableFullDuplex() error { return w.s.server.EnableFullDuplex() }

// server1Writer is for writers of the kind http1.
type server1Writer struct{ serverWriter }

// ReadFrom implements io.ReaderFrom.
func (w server1Writer) ReadFrom(src io.Reader) (int64, error) {
	w.s.set(http.StatusOK)
	return w.s.w.(io.ReaderFrom).ReadFrom(src)
}

// Hijack implements http.Hijacker.
func (w server1Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.s.hijacked(w.s.w.(http.Hijacker).Hijack())
}

// server2Writer is for writers of the kind http2.
type server2Writer struct{ serverWriter }

// Push implements http.Pusher.
func (w server2Writer) Push(target string, o *http.PushOptions) error {
	return w.s.w.(http.Pusher).Push(target, o)
}

// hijacked records that a connection was taken over, if it was.
func (s *Watcher) hijacked(conn net.Conn, rw *bufio.ReadWriter, err error) (net.Conn, *bufio.ReadWriter, error) {
	if err == nil {
		s.set(http.StatusSwitchingProtocols)
		conn = inflight.Conn(&s.Decision, conn)
	}
	return conn, rw, err
}
