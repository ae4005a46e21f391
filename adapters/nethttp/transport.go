package httplimit

import (
	"context"
	"io"
	"net/http"
	"reflect"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/core"
)

// Transport returns an http.RoundTripper that sends a request with base if c allows it. If
// not, nothing is sent, and the error is a [*DeniedError], which errors.As finds in the
// error of an http.Client too. If base is nil, it is http.DefaultTransport.
//
// A limiter with a MaxWait makes a request wait for its turn: see [core.Config]. The wait
// ends with the context of the request. A redirect is a request of its own.
//
// For key functions, RemoteAddr is the host that the request is sent to: [TargetHost] is the
// key for one. A key function may read the body; the whole body is sent all the same.
// Counts and Clears of a [core.Rule] cannot read it.
//
// A request ends for c when the body of its response has been closed or read to its end,
// when base has failed or panicked, or when the context of the request ends. A limit of
// what is in flight thus holds its slot until then. If base has failed, the status of the
// [core.Outcome] is 502, or [core.StatusCanceled] if the context has ended.
//
// The RoundTripper does not change the request, and does not read the response. It may be
// used concurrently if base may. Transport panics if c or an option is nil, or if an
// option is out of its range.
func Transport(c core.Checker, base http.RoundTripper, opts ...TransportOption) http.RoundTripper {
	adapter.MustChecker("httplimit", c)
	if base == nil {
		base = http.DefaultTransport
	}
	t := &transport{checker: c, base: base}
	for _, opt := range opts {
		adapter.MustOption("httplimit", opt != nil)
		opt(&t.holds)
	}
	t.holds.mustBeWhole()
	return t
}

type transport struct {
	checker core.Checker
	base    http.RoundTripper
	holds   holds
}

// CloseIdleConnections closes the idle connections of base. http.Client calls it.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	left := false // base has returned: it closes the body
	defer func() {
		if !left && r.Body != nil {
			_ = r.Body.Close() // nothing is sent
		}
	}()
	host := targetOf(r.URL)
	if err := t.holds.wait(r.Context(), host); err != nil {
		return nil, err
	}
	sent := r.WithContext(r.Context()) // a key function may replace the body of the copy
	out := outgoing(sent)
	d := t.checker.Check(out)
	if !d.Allowed {
		t.checker.Deny(out, d) // hooks that write a log learn of it there
		return nil, &DeniedError{Decision: d, Host: host}
	}
	trip := &trip{checker: t.checker, request: sentRequest{out}, decision: d}
	trip.ended.Store(!d.NeedsOutcome())
	returned := false
	defer func() {
		if !returned {
			trip.end(core.Outcome{Status: http.StatusInternalServerError, Panicked: true})
		}
	}()
	if d.Waited() > 0 { // the host may have asked for a pause meanwhile
		if err := t.holds.wait(r.Context(), host); err != nil {
			returned = true
			t.giveBack(r.Context(), trip)
			return nil, err
		}
	}
	if sameBody(sent.Body, r.Body) {
		sent = r
	}
	resp, err := t.base.RoundTrip(sent)
	left, returned = true, true
	if err != nil || resp == nil {
		trip.end(failed(r.Context()))
		return resp, err
	}
	if resp.Request == sent {
		resp.Request = r
	}
	t.holds.note(host, resp)
	trip.follow(r.Context(), resp)
	return resp, nil
}

// sameBody reports whether two bodies are the same. Bodies whose values cannot be compared never
// are.
func sameBody(a, b io.ReadCloser) bool { return reflect.ValueOf(a).Comparable() && a == b }

// giveBack ends a request that was charged and is not sent.
func (t *transport) giveBack(ctx context.Context, trip *trip) {
	defer trip.end(failed(ctx))
	if l, ok := t.checker.(interface {
		Adjust(ctx context.Context, d core.Decision, cost int64) error
	}); ok {
		_ = l.Adjust(context.WithoutCancel(ctx), trip.decision, 0) // of the store: the request stays charged
	}
}

// failed returns the outcome of a request without a response.
func failed(ctx context.Context) core.Outcome {
	if ctx.Err() != nil {
		return core.Outcome{Status: core.StatusCanceled, Canceled: true}
	}
	return core.Outcome{Status: http.StatusBadGateway}
}
