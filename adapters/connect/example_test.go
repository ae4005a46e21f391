package connectlimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts/textsconnect"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// echo is the service of the examples, made of generated code.
type echo struct {
	textsconnect.UnimplementedTextsHandler
	handle func(ctx context.Context, text string) error
}

func (e echo) Once(ctx context.Context, r *connect.Request[texts.Text]) (*connect.Response[texts.Text], error) {
	if e.handle != nil {
		if err := e.handle(ctx, r.Msg.GetText()); err != nil {
			return nil, err
		}
	}
	return connect.NewResponse(&texts.Text{Text: r.Msg.GetText()}), nil
}

// start starts a server whose service calls handle, and connects to it.
func start(handle func(context.Context, string) error, limits ...connect.Interceptor) (textsconnect.TextsClient, func()) {
	_, handler := textsconnect.NewTextsHandler(echo{handle: handle}, connect.WithInterceptors(limits...))
	server := httptest.NewServer(handler)
	return textsconnect.NewTextsClient(server.Client(), server.URL), server.Close
}

// say calls the service and prints its answer, or the code of the error.
func say(client textsconnect.TextsClient, text string, header ...string) error {
	r := connect.NewRequest(&texts.Text{Text: text})
	add(r.Header(), header)
	answer, err := client.Once(context.Background(), r)
	if err != nil {
		fmt.Println(connect.CodeOf(err))
		return err
	}
	fmt.Println(answer.Msg.GetText())
	return nil
}

func perMinute(quota int64) connect.Interceptor {
	return connectlimit.Interceptor(core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(quota)}},
	}})))
}

func ExamplePerIP() {
	client, stop := start(nil, connectlimit.PerIP(1, time.Minute))
	defer stop()

	_ = say(client, "hello")
	_ = say(client, "hello")
	// Output:
	// hello
	// resource_exhausted
}

// A client reads how long to wait from the details of the error.
func ExampleInterceptor() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerSecond(10), core.PerHour(240)}},
		{Name: "key", Key: keyfuncs.Header("X-Api-Key"), Limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow}}},
	}}))
	client, stop := start(nil, connectlimit.Interceptor(limiter))
	defer stop()

	_ = say(client, "hello", "X-Api-Key", "k1")
	var denied *connect.Error
	if errors.As(say(client, "hello", "X-Api-Key", "k1"), &denied) {
		for _, detail := range denied.Details() {
			value, _ := detail.Value()
			switch d := value.(type) {
			case *errdetails.RetryInfo:
				fmt.Println("retry in", d.GetRetryDelay().AsDuration().Round(time.Minute))
			case *errdetails.QuotaFailure:
				fmt.Println(d.GetViolations()[0].GetDescription())
			}
		}
	}
	// Output:
	// hello
	// resource_exhausted
	// retry in 1h0m0s
	// the limit key allows 1 per 1h
}

// A client sends no more than the server allows it.
func ExampleInterceptor_client() {
	_, handler := textsconnect.NewTextsHandler(echo{})
	server := httptest.NewServer(handler)
	defer server.Close()
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "procedure", Key: keyfuncs.Route(), Limits: []core.Limit{core.PerMinute(1)}}}}))
	client := textsconnect.NewTextsClient(server.Client(), server.URL, connect.WithInterceptors(connectlimit.Interceptor(limiter)))

	_ = say(client, "hello")
	_ = say(client, "hello") // is not sent
	// Output:
	// hello
	// resource_exhausted
}

// A call waits for its turn, for at most two seconds and not longer than its context.
func ExampleInterceptor_waiting() {
	_, handler := textsconnect.NewTextsHandler(echo{})
	server := httptest.NewServer(handler)
	defer server.Close()
	limiter := core.Must(core.New(core.Config{
		MaxWait: 2 * time.Second,
		Rules: []core.Rule{{
			Name: "procedure", Key: keyfuncs.Route(),
			Limits: []core.Limit{{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}},
		}},
	}))
	client := textsconnect.NewTextsClient(server.Client(), server.URL, connect.WithInterceptors(connectlimit.Interceptor(limiter)))

	_ = say(client, "hello")
	_ = say(client, "hello again") // is sent a second later
	// Output:
	// hello
	// hello again
}

// The error tells whether the client's own limiter has denied the call.
func ExampleDeniedError() {
	_, handler := textsconnect.NewTextsHandler(echo{})
	server := httptest.NewServer(handler)
	defer server.Close()
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "all", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerMinute(0)}}}}))
	client := textsconnect.NewTextsClient(server.Client(), server.URL, connect.WithInterceptors(connectlimit.Interceptor(limiter)))

	err := say(client, "hello")
	var denied *connectlimit.DeniedError
	if errors.As(err, &denied) {
		fmt.Println("not sent:", denied.Procedure, denied.Decision.Reason)
	}
	// Output:
	// resource_exhausted
	// not sent: /floodgate.texts.v1.Texts/Once over limit
}

// Each message counts that a client sends in a stream.
func ExamplePerMessage() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerSecond(100)}},
	}}))
	path, _ := textsconnect.NewTextsHandler(echo{}, connect.WithInterceptors(connectlimit.Interceptor(limiter, connectlimit.PerMessage())))
	fmt.Println(path)
	// Output:
	// /floodgate.texts.v1.Texts/
}

func ExampleOnDenied() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	client, stop := start(nil, connectlimit.Interceptor(limiter, connectlimit.OnDenied(func(_ context.Context, spec connect.Spec, d core.Decision) error {
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("%s: %v", spec.Procedure, d.Reason))
	})))
	defer stop()

	_ = say(client, "hello")
	fmt.Println(say(client, "hello"))
	// Output:
	// hello
	// resource_exhausted
	// resource_exhausted: /floodgate.texts.v1.Texts/Once: over limit
}
