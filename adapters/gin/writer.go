package ginlimit

import (
	"bufio"
	"context"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// watched is a writer around Gin's writer. It records whether the connection was hijacked, and
// whether the request's context had ended when the response began. Gin's writer has the status.
type watched struct {
	gin.ResponseWriter
	ctx      context.Context //nolint:containedctx // its state is read when a handler writes
	hijacked bool
	ended    bool
}

// begin is called before each write.
func (w *watched) begin() {
	if !w.Written() {
		w.ended = w.ctx.Err() != nil
	}
}

// Write implements http.ResponseWriter.
func (w *watched) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// WriteString implements io.StringWriter.
func (w *watched) WriteString(s string) (int, error) {
	w.begin()
	return w.ResponseWriter.WriteString(s)
}

// WriteHeaderNow implements gin.ResponseWriter.
func (w *watched) WriteHeaderNow() {
	w.begin()
	w.ResponseWriter.WriteHeaderNow()
}

// Flush implements http.Flusher.
func (w *watched) Flush() {
	w.begin()
	w.ResponseWriter.Flush()
}

// Hijack implements http.Hijacker.
func (w *watched) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.begin()
	conn, rw, err := w.ResponseWriter.Hijack()
	if err == nil {
		w.hijacked = true
	}
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
