package connectlimit

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
	"github.com/floodgate-go/floodgate/core"
)

// WrapUnary implements connect.Interceptor.
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (resp connect.AnyResponse, err error) {
		client := req.Spec().IsClient
		var header http.Header // of the response
		var outer *rpc.Call
		if !client {
			header, outer = responseHeader(ctx), callOf(ctx)
		} else if err := givenUp(ctx); err != nil {
			return nil, err
		}
		r := &request{ctx: ctx, spec: req.Spec(), peer: req.Peer(), header: req.Header(), method: req.HTTPMethod(), message: req.Any()}
		d := i.checker.Check(r)
		if !d.Allowed {
			err := i.deny(r, &d, header)
			if client {
				err = &DeniedError{Decision: d, Procedure: r.spec.Procedure, err: err}
			}
			return nil, err
		}
		set(header, d.AppendHeaders(nil))
		call := rpc.Enter(i.checker, r, d, outer)
		if !client {
			ctx = context.WithValue(ctx, callKey{}, call)
		}
		panicked := true
		defer func() {
			if resp != nil && err == nil {
				header = resp.Header()
			}
			call.End(endOf(ctx, err, panicked, header).Outcome())
		}()
		resp, err = next(ctx, req)
		panicked = false
		return resp, err
	}
}

// responseHeader returns the header of the response to a handler's unary call. It is sent with
// errors too, and an error that a handler returns need not be changed: it may be one for all.
func responseHeader(ctx context.Context) http.Header {
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		return info.ResponseHeader()
	}
	return nil
}

// WrapStreamingHandler implements connect.Interceptor.
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) (err error) {
		r := &request{ctx: ctx, spec: conn.Spec(), peer: conn.Peer(), header: conn.RequestHeader()}
		d := i.checker.Check(r)
		if !d.Allowed {
			return i.deny(r, &d, conn.ResponseHeader())
		}
		header := conn.ResponseHeader()
		set(header, d.AppendHeaders(nil))
		call := rpc.Enter(i.checker, r, d, callOf(ctx))
		s := &handlerConn{StreamingHandlerConn: conn, by: i, request: r}
		s.messages.Call = call
		panicked := true
		defer func() {
			err = s.messages.Err(err)
			call.End(endOf(ctx, err, panicked, header).Outcome())
		}()
		ctx = context.WithValue(ctx, callKey{}, call)
		if i.perMessage {
			conn = s
		}
		err = next(ctx, conn)
		panicked = false
		return err
	}
}

// handlerConn is a stream whose messages count.
type handlerConn struct {
	connect.StreamingHandlerConn
	by       *interceptor
	request  *request
	messages rpc.Messages
}

// Receive implements connect.StreamingHandlerConn.
func (s *handlerConn) Receive(m any) error {
	r := *s.request
	r.message = m
	return s.messages.Receive(func() error { return s.StreamingHandlerConn.Receive(m) }, &r, func(d *core.Decision) error {
		err := s.by.deny(&r, d, s.ResponseTrailer())
		s.ResponseTrailer().Del("Cache-Control") // net/http's server logs that it may not be in a trailer
		return err
	})
}
