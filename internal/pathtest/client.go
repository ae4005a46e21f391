package pathtest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// answer is who answered a request, and which policies counted it.
type answer struct {
	status  int
	handler string // "" if none of ours
	body    string
	counted map[string]bool
}

func read(r *http.Response) (answer, error) {
	a := answer{status: r.StatusCode, handler: r.Header.Get(Header), counted: map[string]bool{}}
	text, err := io.ReadAll(r.Body)
	a.body = string(text)
	if strings.Contains(a.body, bigText) {
		a.handler = "big"
	} else if a.body == "small" {
		a.handler = "static"
	}
	for _, line := range r.Header.Values("Ratelimit-Policy") {
		for item := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(item), ";")
			a.counted[strings.Trim(name, `"`)] = true
		}
	}
	return a, errors.Join(err, r.Body.Close())
}

// client sends request lines as they are.
type client struct {
	address string
	conn    net.Conn
	buffer  *bufio.Reader
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close() // it has been read from
	}
	c.conn = nil
}

// send sends a request over HTTP/1.1. ok is false if the server hung up without an answer.
func (c *client) send(t testing.TB, method, target string) (a answer, ok bool) {
	t.Helper()
	end := ""
	if method == http.MethodConnect {
		end = "Connection: close\r\n" // the response has no other end
	}
	for range 2 { // the server may have closed a connection that was idle
		fresh := c.conn == nil
		if fresh {
			var err error
			if c.conn, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", c.address); err != nil {
				t.Fatal(err)
			}
			c.buffer = bufio.NewReader(c.conn)
		}
		_ = c.conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, err := io.WriteString(c.conn, method+" "+target+" HTTP/1.1\r\nHost: h\r\n"+end+"\r\n")
		var resp *http.Response
		if err == nil {
			resp, err = http.ReadResponse(c.buffer, &http.Request{Method: http.MethodGet}) //nolint:bodyclose // read closes it
		}
		if err == nil {
			a, err = read(resp)
		}
		if err != nil || resp.Close || method == http.MethodConnect {
			c.close()
		}
		if err == nil {
			return a, true
		}
		if fresh {
			break
		}
	}
	return answer{}, false
}

// client2 sends paths over HTTP/2.
type client2 struct {
	address   string
	transport *http.Transport
}

func newClient2(address string) *client2 {
	c := &client2{address, &http.Transport{Protocols: new(http.Protocols)}}
	c.transport.Protocols.SetUnencryptedHTTP2(true)
	return c
}

// send sends a GET request. ok is false if HTTP/2 cannot carry the target.
func (c *client2) send(t testing.TB, target string) (a answer, ok bool) {
	// What the server does not parse it answers with a reset, after which the client would try
	// again and again.
	if _, err := url.ParseRequestURI(target); err != nil || !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return a, false
	}
	u := &url.URL{Scheme: "http", Host: c.address, Opaque: "//" + c.address + target}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	resp, err := c.transport.RoundTrip((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx))
	if err != nil {
		return a, false
	}
	a, err = read(resp)
	return a, err == nil
}
