package grpclimit

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
	"github.com/floodgate-go/floodgate/core"
)

// serverStream is a stream that a checker has allowed.
type serverStream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // that of the stream, with the call
	by      *interceptor
	request *request
	call    *rpc.Call
	counts  bool                  // each message counts
	first   bool                  // no message has been received; of the goroutine that receives
	denied  atomic.Pointer[error] // the error of a message that was denied
}

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream. With PerMessage, it counts the message.
func (s *serverStream) RecvMsg(m any) error {
	if !s.counts {
		return s.ServerStream.RecvMsg(m)
	}
	if denied := s.denied.Load(); denied != nil {
		return *denied
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
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
	err := s.by.refuse(&r, &d, func(lines []core.Header) { s.SetTrailer(pairs(lines)) })
	s.denied.Store(&err)
	return err
}
