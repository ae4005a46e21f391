package fasthttprequest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/core"
)

// withLimit returns a request to an application with a limit for bodies.
func withLimit(c *fasthttp.RequestCtx, limit int) *Request {
	return &Request{fast: c, major: &Major{Bodies: func(Ctx) Bodies { return Bodies{Limit: limit} }}}
}

// opaque and recounted are streams whose count of bytes hasBegun cannot read.
type opaque func(p []byte) (int, error)

func (o opaque) Read(p []byte) (int, error) { return o(p) }

type recounted struct {
	io.Reader
	totalBytesRead string
}

// A stream may have as many bytes as the application allows, and must have as many as the
// request says. Another call of Body returns the same.
func TestTheLengthsOfStreams(t *testing.T) {
	const tooLong, readThen = "longer than 5 bytes", "was read by a middleware"
	for _, row := range []struct {
		text          string
		length, limit int
		broken        string // the error of the stream after its text
		want          string // the error of Body
	}{
		{text: "12345", length: 5, limit: 5},
		{text: "12345", length: -1, limit: 5},
		{text: "123456", length: 6, limit: 5, want: tooLong},
		{text: "123456", length: -1, limit: 5, want: tooLong},
		{text: "12345", length: 5}, {text: "12345", length: 5, limit: -1}, // the default
		{text: "1234", length: 5, limit: 5, want: readThen},
		{length: 0, limit: 5},
		{length: -1, limit: 5, want: readThen},
		{text: "12", length: -1, limit: 5, broken: "reset by the peer", want: "reset by the peer"},
	} {
		for kind, stream := range map[string]func(io.Reader) io.Reader{
			"of fasthttp": func(r io.Reader) io.Reader { return r },
			"no struct":   func(r io.Reader) io.Reader { return opaque(r.Read) },
			"recounted":   func(r io.Reader) io.Reader { return recounted{r, ""} },
		} {
			var c fasthttp.RequestCtx
			var text io.Reader = strings.NewReader(row.text)
			if row.broken != "" {
				text = io.MultiReader(text, iotest.ErrReader(errors.New(row.broken)))
			}
			c.Request.SetBodyStream(stream(text), row.length)
			r := withLimit(&c, row.limit)
			_, first := r.Body(100)
			body, err := r.Body(100)
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) || !errors.Is(err, first) || c.Response.ConnectionClose() != (err != nil) {
				t.Errorf("%s, %+v: %v, then %v; the connection is closed: %t", kind, row, first, err, c.Response.ConnectionClose())
			} else if err == nil && string(body) != row.text {
				t.Errorf("%s, %+v: %q", kind, row, body)
			}
		}
	}
}

// A stream is sent after the handler has returned. Fiber may then have reused its context for another request.
func TestNobodyReadsADecisionInAStream(t *testing.T) {
	var c fasthttp.RequestCtx
	c.SetUserValue(exposedKey{}, &adapter.Exposed{})
	for want, request := range map[bool]func() *fasthttp.RequestCtx{true: func() *fasthttp.RequestCtx { return &c }, false: func() *fasthttp.RequestCtx { return nil }} {
		if _, found := DecisionFrom(request); found != want || SetCost(request, 1) {
			t.Errorf("the handler finds a decision: %t, want %t", found, want)
		}
		streamed := false
		c.Response.SetBodyStream(opaque(func([]byte) (int, error) {
			_, found := DecisionFrom(request)
			streamed = !found
			return 0, io.EOF
		}), -1)
		if err := c.Response.Write(bufio.NewWriter(io.Discard)); err != nil || !streamed {
			t.Errorf("%v, a reader of a stream finds no decision: %t", err, streamed)
		}
	}
}

// Whoever wants no bytes leaves a stream to the handler.
func TestABodyThatNobodyWantsIsNotRead(t *testing.T) {
	var c fasthttp.RequestCtx
	stream := strings.NewReader("12345")
	c.Request.SetBodyStream(stream, 5)
	if body, err := withLimit(&c, 0).Body(0); len(body) > 0 || err != nil || stream.Len() != 5 {
		t.Errorf("%q, %v, and %d bytes are left", body, err, stream.Len())
	}
}

// A request without a body has no form, whatever its type says, and nobody parses a compressed one.
func TestMultipartRequests(t *testing.T) {
	for _, row := range []struct {
		body, encoding string
		broken         bool
	}{{"", "", false}, {"no form", "br", false}, {"no form", "", true}} {
		var c fasthttp.RequestCtx
		c.Request.Header.SetContentType("multipart/form-data; boundary=x")
		c.Request.Header.SetContentEncoding(row.encoding)
		c.Request.Header.SetContentLength(len(row.body))
		c.Request.SetBodyString(row.body)
		if body, err := withLimit(&c, 0).Body(9); (err != nil) != row.broken || err == nil && string(body) != row.body {
			t.Errorf("%+v: %q, %v", row, body, err)
		}
	}
}

// A middleware before the limiter may add lines to the header, also of a chunked request.
func TestLinesThatAMiddlewareAdds(t *testing.T) {
	for head, want := range map[string][]string{"Transfer-Encoding: chunked": nil, "X-User: received": {"received"}} {
		var c fasthttp.RequestCtx
		header := &c.Request.Header
		if err := header.Read(bufio.NewReader(strings.NewReader("POST / HTTP/1.1\r\nHost: h\r\n" + head + "\r\n\r\n"))); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			line := fmt.Sprint(i)
			header.Add("X-User", line)
			want = append(want, line)
			if got := withLimit(&c, 0).HeaderValues("X-User"); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", head, got, want)
			}
		}
	}
}

func TestARequestWithoutAHost(t *testing.T) {
	if got := withLimit(new(fasthttp.RequestCtx), 0).HeaderValues("Host"); got != nil {
		t.Errorf("%q", got)
	}
}

// reusing is a Ctx whose strings are parts of one buffer, which the next request overwrites.
type reusing struct{ buffer []byte }

func (c *reusing) text() string                    { return unsafe.String(&c.buffer[0], len(c.buffer)) }
func (c *reusing) Next() error                     { return nil }
func (c *reusing) Path(...string) string           { return c.text() }
func (c *reusing) Method(...string) string         { return c.text() }
func (c *reusing) Params(string, ...string) string { return c.text() }

// A key function or a hook may keep what a request returns.
func TestTextsOfARequestStay(t *testing.T) {
	c := &reusing{}
	var fast fasthttp.RequestCtx
	r := &Request{fiber: c, fast: &fast, major: &Major{Methods: []string{"GET"}, Route: func(Ctx) string { return c.text() }}}
	for name, read := range map[string]func() string{
		"Path": r.Path, "Method": r.Method, "Route": r.Route, "PathValue": func() string { return r.PathValue("id") },
	} {
		for _, want := range []string{"first", "GET"} { // one of the methods is known
			c.buffer = []byte(want)
			text := read()
			copy(c.buffer, "other")
			if text != want {
				t.Errorf("%s was %q, and is %q after the buffer has been used again", name, want, text)
			}
		}
	}
}

// Another limiter, or an upstream of a proxy, has written RateLimit lines before.
func TestHeadersOfOtherLimitersStay(t *testing.T) {
	l := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "k", Limits: []core.Limit{core.PerHour(1)}}},
		Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return time.Unix(1e9, 0) }})),
	}))
	take := func() core.Decision {
		d, err := l.Take(context.Background(), 1, core.Hit{Rule: "k", Key: "a"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	allowed, denied := take(), take()
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		var c fasthttp.RequestCtx
		c.Response.Header.Set(name, "theirs")
		c.Response.Header.Set("Cache-Control", "public")
		setHeaders(&c, &allowed)
		setHeaders(&c, &denied)
		for _, line := range []struct {
			name   string
			values []string
		}{
			{"RateLimit", []string{`"k";r=0;t=3600`, `"k";r=0;t=3600`}},
			{"RateLimit-Policy", []string{`"k";q=1;w=3600`, `"k";q=1;w=3600`}},
			{"Cache-Control", []string{"no-store"}},
			{"Retry-After", []string{"3600"}},
		} {
			if line.name == name {
				line.values = append([]string{"theirs"}, line.values...)
			}
			if got, want := fmt.Sprintf("%q", c.Response.Header.PeekAll(line.name)), fmt.Sprintf("%q", line.values); got != want {
				t.Errorf("%s after theirs in %s: %s, want %s", line.name, name, got, want)
			}
		}
	}
}

// A hook may take a value from the client.
func TestNoValueOfADenialBeginsAnotherLine(t *testing.T) {
	for _, name := range []string{"Content-Type", "content-type", "X-Reason"} {
		for _, end := range []string{"\n", "\r", "\r\n"} {
			var c fasthttp.RequestCtx
			setDenialHeader(&c, core.Denial{Header: []core.Header{{Name: name, Value: "text/plain" + end + "X-Made-Up: 1"}}}, false)
			if got := string(c.Response.Header.Peek(name)); got != "text/plain"+strings.Repeat(" ", len(end))+"X-Made-Up: 1" {
				t.Errorf("%s with %q: %q", name, end, got)
			}
		}
	}
}

// A key function or a hook may keep the text of an address.
func TestTextsOfAddressesStay(t *testing.T) {
	var c fasthttp.RequestCtx
	r := Request{fast: &c}
	var addrs []net.Addr
	for i := range 200 { // several blocks
		addrs = append(addrs,
			&net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(i)), Port: i},
			&net.TCPAddr{IP: net.ParseIP("2001:db8::ff"), Port: i, Zone: "a zone with a name that is longer than the others, and than its buffer"},
			&net.UnixAddr{Net: "unix", Name: "/run/a"}, &net.TCPAddr{Port: i},
		)
	}
	var texts []string
	for _, a := range addrs {
		c.SetRemoteAddr(a)
		texts = append(texts, r.RemoteAddr())
	}
	for i, a := range addrs {
		if texts[i] != a.String() {
			t.Fatalf("address %d: %q, want %q", i, texts[i], a)
		}
	}
}

func TestWhichConnectionsAreClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // of a test
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	gone, goneTLS := dial(), tls.Client(dial(), &tls.Config{}) //nolint:gosec // nothing is sent
	_, _ = gone.Close(), goneTLS.NetConn().Close()
	pipe, _ := net.Pipe()
	_ = pipe.Close()
	for name, row := range map[string]struct {
		conn net.Conn
		want bool
	}{
		"TCP": {dial(), false}, "TLS": {tls.Client(dial(), &tls.Config{}), false}, //nolint:gosec // nothing is sent
		"TCP, closed": {gone, true}, "TLS, closed": {goneTLS, true},
		"none": {nil, false}, "one that cannot tell": {pipe, false},
	} {
		if got := closed(row.conn); got != row.want {
			t.Errorf("%s: closed is %v", name, got)
		}
	}
}
