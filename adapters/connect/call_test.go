package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts/textsconnect"
	"github.com/floodgate-go/floodgate/adapters/internal/rpctest"
	"github.com/floodgate-go/floodgate/core"
)

// call is a call as the table's handlers see it.
type call struct {
	rpctest.Messages
	ctx context.Context //nolint:containedctx // the handler's
}

// serve returns the handler's error in Connect's words.
func (c *call) serve(h rpctest.Handler) error {
	err := h(c)
	var e *rpctest.Error
	if errors.As(err, &e) {
		return connect.NewError(connect.Code(e.Code), errors.New(e.Text))
	}
	return err
}

func (c *call) Context() context.Context        { return c.ctx }
func (c *call) Decision() (core.Decision, bool) { return connectlimit.DecisionFrom(c.ctx) }
func (c *call) SetCost(cost int64) bool         { return connectlimit.SetCost(c.ctx, cost) }
func (c *call) Deny(d core.Decision) error      { return connectlimit.Deny(c.ctx, d) }

// client calls a server.
type client struct{ textsconnect.TextsClient }

func (s server) Dial(t *testing.T, from string, limits ...core.Checker) rpctest.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext, Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	opts := slices.Clone(s.options)
	for _, l := range limits {
		opts = append(opts, connect.WithInterceptors(connectlimit.Interceptor(l)))
	}
	return client{textsconnect.NewTextsClient(&http.Client{Transport: transport}, "http://"+s.addr, opts...)}
}

func add(header http.Header, pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		header.Add(pairs[i], pairs[i+1])
	}
}

func (c client) Do(ctx context.Context, kind rpctest.Kind, in []string, pairs ...string) rpctest.Reply {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch kind {
	case rpctest.Once:
		r := connect.NewRequest(&texts.Text{Text: in[0]})
		add(r.Header(), pairs)
		out, err := c.TextsClient.Once(ctx, r)
		if err != nil {
			return reply(err, nil, nil)
		}
		return reply(nil, out.Header(), out.Trailer(), out.Msg)
	case rpctest.Down:
		r := connect.NewRequest(&texts.Text{Text: in[0]})
		add(r.Header(), pairs)
		stream, err := c.TextsClient.Down(ctx, r)
		if err != nil {
			return reply(err, nil, nil)
		}
		defer stream.Close() //nolint:errcheck // read to its end
		var all []*texts.Text
		for stream.Receive() {
			all = append(all, &texts.Text{Text: stream.Msg().GetText()})
		}
		return reply(stream.Err(), stream.ResponseHeader(), stream.ResponseTrailer(), all...)
	case rpctest.Up:
		stream := c.TextsClient.Up(ctx)
		add(stream.RequestHeader(), pairs)
		for _, text := range in {
			if stream.Send(&texts.Text{Text: text}) != nil {
				break // CloseAndReceive tells why
			}
		}
		out, err := stream.CloseAndReceive()
		if err != nil {
			return reply(err, nil, nil)
		}
		return reply(nil, out.Header(), out.Trailer(), out.Msg)
	default:
		stream := c.TextsClient.Both(ctx)
		add(stream.RequestHeader(), pairs)
		for _, text := range in {
			if stream.Send(&texts.Text{Text: text}) != nil {
				break // Receive tells why
			}
		}
		_ = stream.CloseRequest()
		defer stream.CloseResponse() //nolint:errcheck // read to its end
		var all []*texts.Text
		for {
			m, err := stream.Receive()
			if err != nil {
				return reply(ended(err), stream.ResponseHeader(), stream.ResponseTrailer(), all...)
			}
			all = append(all, m)
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func reply(err error, header, trailer http.Header, all ...*texts.Text) rpctest.Reply {
	r := rpctest.Reply{}
	for _, m := range all {
		r.Texts = append(r.Texts, m.GetText())
	}
	var failed *connect.Error
	if errors.As(err, &failed) {
		r.Code, r.Message = uint32(failed.Code()), failed.Message()
		if header == nil {
			header = failed.Meta() // of header and trailer
		}
		for _, detail := range failed.Details() {
			r.Details++
			value, _ := detail.Value()
			switch d := value.(type) {
			case *errdetails.RetryInfo:
				r.RetryAfter = d.GetRetryDelay().AsDuration()
			case *errdetails.QuotaFailure:
				for _, v := range d.GetViolations() {
					r.Violations = append(r.Violations, fmt.Sprint(v.GetSubject(), " ", v.GetQuotaId(), " ", v.GetQuotaValue(), " ", v.GetDescription()))
				}
			}
		}
	}
	r.Header = func(name string) []string { return slices.Concat(header.Values(name), trailer.Values(name)) }
	return r
}

// stream is a stream of Both.
type stream struct {
	*connect.BidiStreamForClient[texts.Text, texts.Text]
}

func (c client) Open(ctx context.Context, pairs ...string) rpctest.Stream {
	s := c.Both(ctx)
	add(s.RequestHeader(), pairs)
	return stream{s}
}

func (s stream) Send(text string) error {
	return s.BidiStreamForClient.Send(&texts.Text{Text: text})
}

func (s stream) Receive() (string, *rpctest.Reply) {
	m, err := s.BidiStreamForClient.Receive()
	if err == nil {
		return m.GetText(), nil
	}
	r := reply(ended(err), nil, nil)
	return "", &r
}

func (s stream) CloseSend() {
	_ = s.CloseRequest()
	_ = s.CloseResponse()
}
