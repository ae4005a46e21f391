// Package httpclient limits the requests that a program sends, so that it stays within the
// limits of an API that it calls. Its Transport is an http.RoundTripper:
//
//	limiter, err := core.New(core.Config{
//		MaxWait: 2 * time.Second, // a request waits for its turn; 0: it is denied at once
//		Rules:   []core.Rule{{Name: "host", Key: httpclient.Host, Limits: []core.Limit{core.PerMinute(60)}}},
//	})
//	transport, err := httpclient.New(httpclient.Config{Limiter: limiter, MaxPause: time.Minute})
//	client := &http.Client{Transport: transport}
//
// A denied request is not sent. Its error is a [*DeniedError], which errors.As finds in the error
// of an http.Client. For clients of gRPC and Connect, use their adapters.
package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
)

// Config configures a [Transport].
type Config struct {
	// Limiter decides on each request, redirects among them. Its key functions can read the
	// body of a request that has GetBody, which http.NewRequest sets for bytes and strings.
	Limiter core.Checker
	// Base sends the allowed requests. nil: http.DefaultTransport.
	Base http.RoundTripper
	// MaxPause, 0 (none) to 366 days, is how long a host can pause requests by a response with the
	// status 429 or 503 and a Retry-After, in seconds or as a date. Of several pauses of a host, the
	// one that ends last counts. Pauses of more than 10,000 hosts at a time are ignored.
	MaxPause time.Duration
	// MaxHold, at most 366 days, is how long a request may wait for the end of its host's pause. If the
	// pause ends later, or after the context's deadline, it is denied at once. The limiter decides
	// after the pause. A request stays charged if a pause begins while it waits for its turn.
	MaxHold time.Duration
}

// New returns a Transport. Its error wraps [core.ErrConfig]. MaxHold needs a MaxPause.
func New(c Config) (*Transport, error) {
	if nilcheck.IsNil(c.Limiter) {
		return nil, fmt.Errorf("%w: httpclient: Limiter: nil: pass one, such as the limiter that core.New returns", core.ErrConfig)
	}
	if min(c.MaxPause, c.MaxHold) < 0 || max(c.MaxPause, c.MaxHold) > core.MaxWindow || c.MaxHold > 0 && c.MaxPause == 0 {
		return nil, fmt.Errorf("%w: httpclient: MaxPause: %v, MaxHold: %v: each must be from 0 to 366 days, and MaxHold needs a MaxPause", core.ErrConfig, c.MaxPause, c.MaxHold)
	}
	if c.Base == nil {
		c.Base = http.DefaultTransport
	}
	return &Transport{config: c, pauses: pauses{ends: map[string]time.Time{}}}, nil
}

// Transport is an http.RoundTripper that sends the requests that its limiter allows. It does
// not change them. It may be used concurrently if Config.Base may.
type Transport struct {
	config Config
	pauses pauses
}

// CloseIdleConnections closes the idle connections of Config.Base. http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.config.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper. For the limiter, a request ends when the body of its
// response is closed or read to its end, Config.Base fails, or its context ends: a slot is held
// until then. The status of the [core.Outcome] is 502 if Config.Base has failed, or a pause began
// while the request waited. It is [core.StatusCanceled] if the context has ended.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, host, request := r.Context(), hostOf(r.URL), outgoing{httprequest.Request{HTTP: r}}
	settle, sent := func(core.Outcome) {}, false
	defer func() {
		if !sent { // the request was denied, or Base has panicked
			if r.Body != nil {
				_ = r.Body.Close()
			}
			settle(core.Outcome{Status: http.StatusInternalServerError, Panicked: true})
		}
	}()
	if err := t.hold(ctx, host); err != nil {
		return nil, err
	}
	d := t.config.Limiter.Check(request)
	if !d.Allowed {
		t.config.Limiter.Deny(request, d) // for hooks that write a log
		return nil, &DeniedError{Decision: d, Host: host}
	}
	if d.NeedsOutcome() {
		settle = func(o core.Outcome) { t.config.Limiter.Settle(request, d, o) } // the first call counts
	}
	if d.Waited > 0 { // the host may have asked for a pause meanwhile
		if err := t.hold(ctx, host); err != nil {
			settle(failed(ctx))
			return nil, err
		}
	}
	resp, err := t.config.Base.RoundTrip(r)
	sent = true
	if err != nil || resp == nil {
		settle(failed(ctx))
		return resp, err //nolint:wrapcheck // the caller knows it
	}
	t.pauses.note(host, resp, t.config.MaxPause)
	if d.NeedsOutcome() {
		follow(ctx, resp, settle)
	}
	return resp, nil
}

// failed returns the outcome of a request without a response.
func failed(ctx context.Context) core.Outcome {
	if ctx.Err() != nil {
		return core.Outcome{Status: core.StatusCanceled, Canceled: true}
	}
	return core.Outcome{Status: http.StatusBadGateway}
}

// follow settles when the caller is done with the response.
func follow(ctx context.Context, resp *http.Response, settle func(core.Outcome)) {
	// A copy of the header: the caller may change the response's at any time.
	o := core.Outcome{Status: resp.StatusCode, Header: resp.Header.Clone().Get}
	if resp.Body == nil || resp.Body == http.NoBody {
		settle(o)
		return
	}
	stop := context.AfterFunc(ctx, func() { settle(o) })
	b := &body{resp.Body, func() { stop(); settle(o) }}
	resp.Body = b
	if w, ok := b.ReadCloser.(io.Writer); ok { // the connection after 101 Switching Protocols
		resp.Body = struct {
			*body
			io.Writer
		}{b, w}
	}
}

// body calls end when it is closed, or read to its end or an error.
type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err //nolint:wrapcheck // io.EOF, or the error that the caller knows
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close() //nolint:wrapcheck // the caller's
}

// DeniedError is the error of a request that a [Transport] has not sent.
type DeniedError struct {
	// Decision denied the request. If Held is set, it has only a Reason, a RetryAfter and an Err.
	Decision core.Decision
	// Host is the host that the request was for: see [Host].
	Host string
	// Held reports that a pause of the host is not over: see [Config].MaxPause.
	Held bool
}

// Error names the host, limiter and rule, but no key.
func (e *DeniedError) Error() string {
	d := &e.Decision
	text := fmt.Sprintf("httpclient: the request to %q was not sent: ", e.Host)
	if e.Held {
		text += "the host has asked for a pause"
	} else {
		text += fmt.Sprintf("limiter %q, rule %q: %v", d.Limiter(), d.Rule(), d.Reason)
	}
	if d.RetryAfter > 0 && d.RetryAfter != core.Never {
		text += fmt.Sprintf(", retry after %v", d.RetryAfter)
	}
	if d.Err != nil {
		text += ": " + d.Err.Error()
	}
	return text
}

// Unwrap returns Decision.Err.
func (e *DeniedError) Unwrap() error { return e.Decision.Err }

// Host is a key function for requests that a [Transport] sends, and an error for others. The key is
// the host of the request's URL in one spelling: a name in lower case without a trailing dot, an
// address as [netip.Addr] writes it. It has the port, unless that is the scheme's default:
// "api.example", "api.example:8443". The Host field of the request does not change it.
func Host(dst []byte, r core.Request) ([]byte, error) {
	host, ok := r.Value(hostKey{}).(string)
	if !ok {
		return dst, errors.New("httpclient: Host is for the requests of a Transport")
	}
	return append(dst, host...), nil
}

// hostKey is the key under which an outgoing request has its host.
type hostKey struct{}

func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	host, port := strings.TrimSuffix(u.Hostname(), "."), strings.TrimLeft(u.Port(), "0")
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().String()
	} else {
		host = strings.ToLower(host)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		return host
	}
	return host + ":" + port
}

// outgoing is the core.Request of a client's request.
type outgoing struct{ httprequest.Request }

// RemoteAddr returns the host that the request is sent to.
func (r outgoing) RemoteAddr() string { return hostOf(r.HTTP.URL) }

func (r outgoing) Value(key any) any {
	if key == (hostKey{}) {
		return hostOf(r.HTTP.URL)
	}
	return r.Request.Value(key)
}

// Body implements core.Request. It reads a copy of the body, which the Base may be sending.
func (r outgoing) Body(max int) ([]byte, error) {
	switch {
	case r.HTTP.Body == nil || r.HTTP.Body == http.NoBody:
		return nil, nil
	case r.HTTP.GetBody == nil:
		return nil, core.ErrBodyRead
	}
	copied, err := r.HTTP.GetBody()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller's own
	}
	defer func() { _ = copied.Close() }()
	return io.ReadAll(io.LimitReader(copied, int64(max)))
}
