package adaptertest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// timeout ends what hangs; nothing is measured by it.
const timeout = 20 * time.Second

// client speaks to a server from one local address.
type client struct {
	t    *testing.T
	addr string
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	http *http.Client
}

// reading is a connection whose user finds out by reading that it has failed. A server may answer
// and close the connection while the client still sends the body. Then a write fails, and the
// answer can be read all the same. http.Transport would drop the answer.
type reading struct{ net.Conn }

func (c reading) Write(b []byte) (int, error) {
	_, _ = c.Conn.Write(b) // an error ends reading too
	return len(b), nil
}

func newClient(t *testing.T, addr, local string) *client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}, Timeout: timeout}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return reading{conn}, nil
	}
	transport := &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 300}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t, addr, dial, &http.Client{
		Transport:     transport,
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// direct is a client that connects itself, proxied one that a trusted proxy connects for.
func direct(t *testing.T, addr string) *client  { return newClient(t, addr, "127.0.0.1") }
func proxied(t *testing.T, addr string) *client { return newClient(t, addr, "127.0.0.2") }

// response is a response that has been read.
type response struct {
	status int
	header http.Header
	body   string
}

// do sends a request. header has names and values, one after the other.
func (c *client) do(method, path, body string, header ...string) response {
	c.t.Helper()
	r, err := c.try(method, path, body, header...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (c *client) try(method, path, body string, header ...string) (response, error) {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+c.addr+path, reader)
	if err != nil {
		return response{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	b, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(b)}, err
}

func (c *client) get(path string, header ...string) response {
	c.t.Helper()
	return c.do(http.MethodGet, path, "", header...)
}

// post sends a form.
func (c *client) post(path, form string, header ...string) response {
	c.t.Helper()
	return c.do(http.MethodPost, path, form, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
}

// raw sends bytes as they are on a new connection and returns the status of the first response.
func (c *client) raw(text string) int {
	c.t.Helper()
	return c.exchange(text).status
}

// exchange is raw with the header and the body of the response.
func (c *client) exchange(text string) response {
	c.t.Helper()
	conn, err := c.dial(context.Background(), "tcp", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // of no interest any more
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := io.WriteString(conn, text); err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		c.t.Fatalf("%.40q: %v", text, err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	body, _ := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(body)}
}

func dial(addr string) (net.Conn, error) {
	return (&net.Dialer{Timeout: timeout}).DialContext(context.Background(), "tcp", addr)
}

// count sends n requests and counts their statuses.
func count(n int, send func(i int) response) map[int]int {
	statuses := map[int]int{}
	for i := range n {
		statuses[send(i).status]++
	}
	return statuses
}

// want fails where the statuses are not these.
func want(t *testing.T, got map[int]int, status ...int) {
	t.Helper()
	expected := map[int]int{}
	for i := 0; i < len(status); i += 2 {
		expected[status[i]] = status[i+1]
	}
	if len(got) != len(expected) {
		t.Fatalf("statuses and how often each came: %v, want %v", got, expected)
	}
	for s, n := range expected {
		if got[s] != n {
			t.Fatalf("statuses and how often each came: %v, want %v", got, expected)
		}
	}
}

func ok(c Context) error { return c.Respond(http.StatusOK, "ok") }

// limited is an application with GET / behind a limiter.
func limited(c core.Checker) App {
	return App{Routes: []Route{{Method: http.MethodGet, Pattern: "/", Limits: []Limit{{Checker: c}}, Handler: ok}}}
}
