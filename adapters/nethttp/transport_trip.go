package httplimit

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// trip is a request that has been allowed and may need to be settled.
type trip struct {
	checker  core.Checker
	request  core.Request
	decision core.Decision
	ended    atomic.Bool
	stop     func() bool // nil until there is a response
}

// end settles the decision, the first time that it is called.
func (t *trip) end(o core.Outcome) {
	if t.ended.CompareAndSwap(false, true) {
		t.checker.Settle(t.request, t.decision, o)
	}
}

// follow ends the trip when the caller is done with the response.
func (t *trip) follow(ctx context.Context, resp *http.Response) {
	if t.ended.Load() {
		return
	}
	// A copy of the header: the caller may change the response's at any time.
	o := core.Outcome{Status: resp.StatusCode, Header: resp.Header.Clone().Get}
	if resp.Body == nil || resp.Body == http.NoBody {
		t.end(o)
		return
	}
	b := &tripBody{ReadCloser: resp.Body, trip: t, outcome: o}
	t.stop = context.AfterFunc(ctx, func() { t.end(o) })
	if w, ok := resp.Body.(io.Writer); ok { // the connection after 101 Switching Protocols
		resp.Body = &tripConn{tripBody: b, Writer: w}
	} else {
		resp.Body = b
	}
}

// tripBody ends the trip when the body is closed, or read to its end or an error.
type tripBody struct {
	io.ReadCloser
	trip    *trip
	outcome core.Outcome
}

func (b *tripBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err //nolint:wrapcheck // io.EOF, or the error that the caller knows
}

func (b *tripBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close() //nolint:wrapcheck // the caller's
}

func (b *tripBody) end() {
	b.trip.stop()
	b.trip.end(b.outcome)
}

// tripConn is a body that can also be written to.
type tripConn struct {
	*tripBody
	io.Writer
}
