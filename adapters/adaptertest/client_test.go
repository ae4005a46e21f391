package adaptertest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A server may answer before it has read the body, and close the connection. The client
// reads the answer although its write fails.
func TestAnAnswerBeforeTheBodyIsRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReaderSize(conn, 16)
			for line := ""; err == nil && line != "\r\n"; line, err = r.ReadString('\n') {
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 4\r\n\r\nwait")
			_ = conn.Close()
		}
	}()
	c := direct(t, l.Addr().String())
	body := strings.Repeat("x", 4<<20)
	for range 50 {
		if r := c.do(http.MethodPost, "/", body); r.status != http.StatusTooManyRequests || r.body != "wait" {
			t.Fatalf("status %d, %q", r.status, r.body)
		}
	}
	for range 50 {
		if r := c.exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4194304\r\n\r\n" + body); r.status != http.StatusTooManyRequests || r.body != "wait" {
			t.Fatalf("status %d, %q", r.status, r.body)
		}
	}
	_ = l.Close()
	<-served
}
