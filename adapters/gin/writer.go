package ginlimit

import (
	"bufio"
	"net"

	"github.com/gin-gonic/gin"
)

// watched is Gin's writer, which knows its status, and notes a hijack.
type watched struct {
	gin.ResponseWriter
	hijacked bool
}

// Hijack implements http.Hijacker.
func (w *watched) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.ResponseWriter.Hijack()
	w.hijacked = w.hijacked || err == nil
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() gin.ResponseWriter { return w.ResponseWriter }
