package fasthttprequest

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/floodgate-go/floodgate/core"
)

// withLimit returns a request to an application with a limit for bodies.
func withLimit(c *fasthttp.RequestCtx, limit int) *Request {
	return &Request{fast: c, major: &Major{Bodies: func(Ctx) Bodies { return Bodies{Limit: limit} }}}
}

// A stream may have as many bytes as the application allows, and must have as many as the
// request says.
func TestTheLengthsOfStreams(t *testing.T) {
	for _, row := range []struct {
		text              string
		length, limit     int
		tooLong, readThen bool
	}{
		{text: "12345", length: 5, limit: 5},
		{text: "12345", length: -1, limit: 5},
		{text: "123456", length: 6, limit: 5, tooLong: true},
		{text: "123456", length: -1, limit: 5, tooLong: true},
		{text: "12345", length: 5}, {text: "12345", length: 5, limit: -1}, // the default
		{text: "1234", length: 5, limit: 5, readThen: true},
		{length: 0, limit: 5},
		{length: -1, limit: 5, readThen: true},
	} {
		var c fasthttp.RequestCtx
		c.Request.SetBodyStream(strings.NewReader(row.text), row.length)
		body, err := withLimit(&c, row.limit).Body(100)
		var bad *core.BadRequestError
		if tooLong := errors.As(err, &bad); tooLong != row.tooLong || errors.Is(err, core.ErrBodyRead) != row.readThen {
			t.Errorf("%+v: %v", row, err)
		} else if err == nil && string(body) != row.text {
			t.Errorf("%+v: %q", row, body)
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

// A request without a body has no form, whatever its type says.
func TestAMultipartRequestWithoutABody(t *testing.T) {
	var c fasthttp.RequestCtx
	c.Request.Header.SetContentType("multipart/form-data; boundary=x")
	c.Request.Header.SetContentLength(0)
	if body, err := withLimit(&c, 0).Body(9); len(body) > 0 || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

// A middleware before the limiter may add lines to the header of a chunked request.
func TestLinesThatAMiddlewareAdds(t *testing.T) {
	var c fasthttp.RequestCtx
	header := &c.Request.Header
	if err := header.Read(bufio.NewReader(strings.NewReader("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"))); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 3 {
		line := fmt.Sprint(i)
		header.Add("X-User", line)
		want = append(want, line)
		if got := withLimit(&c, 0).HeaderValues("X-User"); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestARequestWithoutAHost(t *testing.T) {
	var c fasthttp.RequestCtx
	if got := withLimit(&c, 0).HeaderValues("Host"); got != nil {
		t.Errorf("%q", got)
	}
}
