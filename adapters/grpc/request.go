package grpclimit

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// request is the core.Request of a call, or of a message of a stream.
type request struct {
	ctx     context.Context //nolint:containedctx // a core.Request has the context of the call
	method  string
	route   string
	remote  string // of a client's call: the target of the connection
	client  bool
	message any
}

var _ core.Request = (*request)(nil)

// messageKey is the key under which a request has the message.
type messageKey struct{}

// Message returns the request message of the call that r stands for, for key functions and hooks:
//
//	keyfuncs.Func(func(r core.Request) (string, error) {
//		login, _ := grpclimit.Message(r).(*auth.LoginRequest)
//		return login.GetUsername(), nil
//	})
//
// It is nil for a stream, because a stream is decided on before its first message. With
// [PerMessage], it is the message that is decided on, from the second one on. It is nil if r is not
// a call of this package. The caller must not change the message.
func Message(r core.Request) any { return r.Value(messageKey{}) }

// Context implements core.Request.
func (r *request) Context() context.Context { return r.ctx }

// Method implements core.Request. gRPC sends every call with POST.
func (*request) Method() string { return http.MethodPost }

// Path implements core.Request.
func (r *request) Path() string { return r.method }

// EscapedPath implements core.Request.
func (r *request) EscapedPath() string { return r.method }

// Route implements core.Request.
func (r *request) Route() string { return r.route }

// PathValue returns "": a method has no parameters in its path.
func (*request) PathValue(string) string { return "" }

// RemoteAddr implements core.Request.
func (r *request) RemoteAddr() string {
	if r.client {
		return r.remote
	}
	if p, ok := peer.FromContext(r.ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

// HeaderValues implements core.Request.
func (r *request) HeaderValues(name string) []string {
	name = strings.ToLower(name)
	if name == "host" {
		name = ":authority"
	}
	if r.client {
		md, _ := metadata.FromOutgoingContext(r.ctx)
		return md.Get(name)
	}
	return metadata.ValueFromIncomingContext(r.ctx, name)
}

// Cookie implements core.Request.
func (r *request) Cookie(name string) (string, bool) {
	c, err := (&http.Request{Header: http.Header{"Cookie": r.HeaderValues("cookie")}}).Cookie(name)
	if err != nil {
		return "", false
	}
	return c.Value, true
}

// Query implements core.Request.
func (*request) Query(string) (string, bool) { return "", false }

// RawQuery implements core.Request.
func (*request) RawQuery() string { return "" }

// Value implements core.Request.
func (r *request) Value(key any) any {
	switch key.(type) {
	case messageKey:
		return r.message
	case requestlog.NoBodyKey:
		return requestlog.ErrNoBody
	}
	return r.ctx.Value(key)
}

// Body implements core.Request.
func (*request) Body(int) ([]byte, error) { return nil, requestlog.ErrNoBody }
