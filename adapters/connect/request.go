package connectlimit

import (
	"context"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// request is the core.Request of a call, or of a message of a stream.
type request struct {
	ctx     context.Context //nolint:containedctx // a core.Request has the context of the call
	spec    connect.Spec
	peer    connect.Peer
	header  http.Header
	method  string // "": POST
	message any
}

var _ core.Request = (*request)(nil)

// messageKey is the key under which a request has the message.
type messageKey struct{}

// Message returns the request message of the call that r stands for, for key functions and hooks:
//
//	keyfuncs.Func(func(r core.Request) (string, error) {
//		login, _ := connectlimit.Message(r).(*auth.LoginRequest)
//		return login.GetUsername(), nil
//	})
//
// It is nil for a stream, because a stream is decided on before its first message. With
// [PerMessage], it is the message that is decided on, from the second one on. It is nil if r is not
// a call of this package. The caller must not change the message.
func Message(r core.Request) any { return r.Value(messageKey{}) }

// Context implements core.Request.
func (r *request) Context() context.Context { return r.ctx }

// Method implements core.Request. It is POST, or GET for a call that the client has sent with GET.
// Of a client's own call, it is POST, because the method is not known before the call is sent.
func (r *request) Method() string {
	if r.method == "" {
		return http.MethodPost
	}
	return r.method
}

// Path implements core.Request.
func (r *request) Path() string { return r.spec.Procedure }

// EscapedPath implements core.Request.
func (r *request) EscapedPath() string { return r.spec.Procedure }

// Route implements core.Request.
func (r *request) Route() string { return r.spec.Procedure }

// PathValue returns "": a procedure has no parameters in its path.
func (*request) PathValue(string) string { return "" }

// RemoteAddr implements core.Request.
func (r *request) RemoteAddr() string { return r.peer.Addr }

// HeaderValues implements core.Request. The value of a binary header has many spellings in base64,
// so that it is decoded. What cannot be decoded is left as it is.
func (r *request) HeaderValues(name string) []string {
	lines := r.header.Values(name)
	if len(name) < 4 || !strings.EqualFold(name[len(name)-4:], "-bin") {
		return lines
	}
	decoded := make([]string, len(lines))
	for i, line := range lines {
		decoded[i] = line
		if b, err := connect.DecodeBinaryHeader(line); err == nil {
			decoded[i] = string(b)
		}
	}
	return decoded
}

// Cookie implements core.Request.
func (r *request) Cookie(name string) (string, bool) {
	c, err := (&http.Request{Header: r.header}).Cookie(name)
	if err != nil {
		return "", false
	}
	return c.Value, true
}

// Query implements core.Request. Only a GET has a query: in it are the message and its encoding.
func (r *request) Query(name string) (string, bool) {
	values := r.peer.Query[name]
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// RawQuery implements core.Request. Connect has parsed the query: the parameters are in the order
// of their names.
func (r *request) RawQuery() string { return r.peer.Query.Encode() }

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
