package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	grpclimit "github.com/floodgate-go/floodgate/adapters/grpc"
	"github.com/floodgate-go/floodgate/adapters/grpc/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/internal/rpctest"
	"github.com/floodgate-go/floodgate/core"
)

// call is a call as the table's handlers see it.
type call struct {
	rpctest.Messages
	ctx context.Context //nolint:containedctx // the handler's
}

func (c *call) serve(h rpctest.Handler) error { return statusOf(h(c)) }

func (c *call) Context() context.Context        { return c.ctx }
func (c *call) Decision() (core.Decision, bool) { return grpclimit.DecisionFrom(c.ctx) }
func (c *call) SetCost(cost int64) bool         { return grpclimit.SetCost(c.ctx, cost) }
func (c *call) Deny(d core.Decision) error      { return grpclimit.Deny(c.ctx, d) }

// client calls a server.
type client struct{ texts.TextsClient }

func (s server) Dial(t *testing.T, from string, limits ...core.Checker) rpctest.Client {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }),
	}
	for _, l := range limits {
		opts = append(opts, grpclimit.DialOptions(l)...)
	}
	cc, err := grpc.NewClient("passthrough:///"+string(s), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return client{texts.NewTextsClient(cc)}
}

func (c client) Do(ctx context.Context, kind rpctest.Kind, in []string, pairs ...string) rpctest.Reply {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, pairs...))
	defer cancel()
	switch kind {
	case rpctest.Once:
		var header, trailer metadata.MD
		out, err := c.TextsClient.Once(ctx, &texts.Text{Text: in[0]}, grpc.Header(&header), grpc.Trailer(&trailer))
		return reply(err, header, trailer, out)
	case rpctest.Down:
		stream, err := c.TextsClient.Down(ctx, &texts.Text{Text: in[0]})
		if err != nil {
			return reply(err, nil, nil)
		}
		return read(stream, stream.Recv)
	case rpctest.Up:
		stream, err := c.TextsClient.Up(ctx)
		if err != nil {
			return reply(err, nil, nil)
		}
		for _, text := range in {
			if stream.Send(&texts.Text{Text: text}) != nil {
				break // CloseAndRecv tells why
			}
		}
		out, err := stream.CloseAndRecv()
		header, _ := stream.Header()
		return reply(err, header, stream.Trailer(), out)
	default:
		stream, err := c.TextsClient.Both(ctx)
		if err != nil {
			return reply(err, nil, nil)
		}
		for _, text := range in {
			if stream.Send(&texts.Text{Text: text}) != nil {
				break // Recv tells why
			}
		}
		_ = stream.CloseSend()
		return read(stream, stream.Recv)
	}
}

// read reads a stream to its end.
func read(s grpc.ClientStream, receive func() (*texts.Text, error)) rpctest.Reply {
	var all []*texts.Text
	for {
		m, err := receive()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			header, _ := s.Header()
			return reply(err, header, s.Trailer(), all...)
		}
		all = append(all, m)
	}
}

func reply(err error, header, trailer metadata.MD, all ...*texts.Text) rpctest.Reply {
	r := rpctest.Reply{Header: func(name string) []string { return slices.Concat(header.Get(name), trailer.Get(name)) }}
	for _, m := range all {
		if m != nil {
			r.Texts = append(r.Texts, m.GetText())
		}
	}
	s := status.Convert(err)
	r.Code, r.Message = uint32(s.Code()), s.Message()
	for _, detail := range s.Details() {
		r.Details++
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			r.RetryAfter = d.GetRetryDelay().AsDuration()
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations() {
				r.Violations = append(r.Violations, fmt.Sprint(v.GetSubject(), " ", v.GetQuotaId(), " ", v.GetQuotaValue(), " ", v.GetDescription()))
			}
		}
	}
	return r
}

// stream is a stream of Both.
type stream struct {
	grpc.BidiStreamingClient[texts.Text, texts.Text]
	err error
}

func (c client) Open(ctx context.Context, pairs ...string) rpctest.Stream {
	s, err := c.Both(metadata.AppendToOutgoingContext(ctx, pairs...))
	return stream{s, err}
}

func (s stream) Send(text string) error {
	if s.err != nil {
		return s.err
	}
	return s.BidiStreamingClient.Send(&texts.Text{Text: text})
}

func (s stream) Receive() (string, *rpctest.Reply) {
	if s.err != nil {
		r := reply(s.err, nil, nil)
		return "", &r
	}
	m, err := s.Recv()
	if err == nil {
		return m.GetText(), nil
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	r := reply(err, nil, s.Trailer())
	return "", &r
}

func (s stream) CloseSend() {
	if s.err == nil {
		_ = s.BidiStreamingClient.CloseSend()
	}
}
