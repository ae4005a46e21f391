package connectlimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
)

// WrapStreamingClient implements connect.Interceptor. The program sets the header of the stream
// after it has opened the stream. So the checker decides, and the stream waits, when the program
// first sends, receives, closes, or reads the header of the response.
func (i *interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return &clientConn{StreamingClientConn: next(ctx, spec), by: i, ctx: ctx, call: rpc.Pending(i.checker)}
	}
}

// clientConn is a client's stream.
type clientConn struct {
	connect.StreamingClientConn
	by   *interceptor
	ctx  context.Context //nolint:containedctx // that of the stream
	call *rpc.Call

	begin sync.Once // no lock is shared by streams
	err   error     // the error of a denied stream
	stop  func() bool
}

// errBroken is the error of a stream on which the checker has panicked.
var errBroken = connect.NewError(connect.CodeInternal, errors.New("the limiter has panicked"))

// begun decides on the stream, if that has not been done. It returns the error of a denied stream.
func (s *clientConn) begun() error {
	s.begin.Do(func() {
		if s.err = givenUp(s.ctx); s.err != nil {
			return
		}
		s.err = errBroken
		r := &request{ctx: s.ctx, spec: s.Spec(), peer: s.Peer(), header: s.RequestHeader()}
		d := s.by.checker.Check(r)
		if !d.Allowed {
			s.err = &DeniedError{Decision: d, Procedure: r.spec.Procedure, err: s.by.deny(r, &d, nil)}
			return
		}
		s.err = nil
		s.call.Next(r, d)
		if d.NeedsOutcome() {
			s.stop = context.AfterFunc(s.ctx, func() { s.settle(nil) })
		}
	})
	return s.err
}

// givenUp returns the error of a client's call whose context has ended before it is sent.
func givenUp(ctx context.Context) error {
	code, text := rpc.GivenUp(ctx.Err())
	if code == rpc.OK {
		return nil
	}
	return connect.NewError(connect.Code(code), errors.New(text))
}

// end settles the stream after err, once it has begun.
func (s *clientConn) end(err error) {
	s.settle(err)
	if s.stop != nil {
		s.stop()
	}
}

func (s *clientConn) settle(err error) {
	if s.call.NeedsOutcome() {
		s.call.End(endOf(s.ctx, err, false, nil).Outcome())
	}
}

// Send implements connect.StreamingClientConn.
func (s *clientConn) Send(m any) error {
	if err := s.begun(); err != nil {
		return err
	}
	err := s.StreamingClientConn.Send(m)
	if errors.As(err, new(*DeniedError)) { // of a limiter behind: the stream has ended
		s.end(err)
	}
	return err
}

// CloseRequest implements connect.StreamingClientConn.
func (s *clientConn) CloseRequest() error {
	if s.begun() != nil {
		return nil //nolint:nilerr // Receive returns the error
	}
	return s.StreamingClientConn.CloseRequest()
}

// Receive implements connect.StreamingClientConn.
func (s *clientConn) Receive(m any) error {
	if err := s.begun(); err != nil {
		return err
	}
	err := s.StreamingClientConn.Receive(m)
	switch {
	case errors.Is(err, io.EOF):
		s.end(nil)
	case err != nil:
		s.end(err)
	}
	return err
}

// CloseResponse implements connect.StreamingClientConn. A stream whose end the program has not seen
// was canceled.
func (s *clientConn) CloseResponse() error {
	if s.begun() != nil {
		return nil
	}
	defer s.end(context.Canceled)
	return s.StreamingClientConn.CloseResponse()
}

// ResponseHeader implements connect.StreamingClientConn.
func (s *clientConn) ResponseHeader() http.Header {
	if s.begun() != nil {
		return http.Header{}
	}
	return s.StreamingClientConn.ResponseHeader()
}

// ResponseTrailer implements connect.StreamingClientConn.
func (s *clientConn) ResponseTrailer() http.Header {
	if s.begun() != nil {
		return http.Header{}
	}
	return s.StreamingClientConn.ResponseTrailer()
}
