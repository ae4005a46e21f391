package connectlimit

import (
	"context"
	"net/http"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
)

// WrapUnary implements connect.Interceptor.
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (resp connect.AnyResponse, err error) {
		client := req.Spec().IsClient
		var header http.Header // of the response
		if !client {
			header = responseHeader(ctx)
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
		set(header, rpc.Fields(&d))
		call := rpc.Enter(i.checker, r, d, callOf(ctx))
		if !client {
			ctx = context.WithValue(ctx, callKey{}, call)
		}
		panicked := true
		defer func() {
			if resp != nil && !panicked && err == nil {
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
		counts := i.perMessage && conn.Spec().StreamType&connect.StreamTypeClient != 0
		set(conn.ResponseHeader(), rpc.Fields(&d))
		s := &handlerConn{StreamingHandlerConn: conn, by: i, request: r, call: rpc.Enter(i.checker, r, d, callOf(ctx)), first: true}
		panicked := true
		defer func() {
			if denied := s.denied.Load(); denied != nil {
				err = *denied
			}
			s.call.End(endOf(ctx, err, panicked, conn.ResponseHeader()).Outcome())
		}()
		ctx = context.WithValue(ctx, callKey{}, s.call)
		if counts {
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
	by      *interceptor
	request *request
	call    *rpc.Call
	first   bool                  // no message has been received; of the goroutine that receives
	denied  atomic.Pointer[error] // the error of a message that was denied
}

// Receive implements connect.StreamingHandlerConn.
func (s *handlerConn) Receive(m any) error {
	if denied := s.denied.Load(); denied != nil {
		return *denied
	}
	if err := s.StreamingHandlerConn.Receive(m); err != nil {
		return err
	}
	if s.first {
		s.first = false
		return nil
	}
	if s.call.NeedsOutcome() {
		s.call.Settle(rpc.End{}.Outcome())
	}
	r := *s.request
	r.message = m
	d := s.by.checker.Check(&r)
	if d.Allowed {
		s.call.Next(&r, d)
		return nil
	}
	err := s.by.deny(&r, &d, s.ResponseTrailer())
	s.ResponseTrailer().Del("Cache-Control") // net/http's server logs that it may not be in a trailer
	s.denied.Store(&err)
	return err
}
