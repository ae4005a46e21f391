package connectlimit_test

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	connectlimit "github.com/floodgate-go/floodgate/adapters/connect"
	"github.com/floodgate-go/floodgate/adapters/connect/internal/texts"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func ExampleDecisionFrom() {
	client, stop := start(func(ctx context.Context, _ string) error {
		d, _ := connectlimit.DecisionFrom(ctx)
		fmt.Println(d.Remaining, "calls are left")
		return nil
	}, perMinute(5))
	defer stop()

	_ = say(client, "hello")
	// Output:
	// 4 calls are left
	// hello
}

// The key is a field of the request message.
func ExampleMessage() {
	text := keyfuncs.Func(func(r core.Request) (string, error) {
		m, _ := connectlimit.Message(r).(*texts.Text)
		return m.GetText(), nil
	})
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "text", Key: text, Limits: []core.Limit{core.PerMinute(1)}}}}))
	client, stop := start(nil, connectlimit.Interceptor(limiter))
	defer stop()

	for _, text := range []string{"a", "b", "a"} {
		_ = say(client, text)
	}
	// Output:
	// a
	// b
	// resource_exhausted
}

// Only failed calls count.
func ExampleCode() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "failures", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(1)},
		Counts: func(_ core.Request, o core.Outcome) bool { return connectlimit.Code(o) == connect.CodeNotFound },
	}}}))
	client, stop := start(func(_ context.Context, text string) error {
		if text != "orders" {
			return connect.NewError(connect.CodeNotFound, errors.New("no such thing"))
		}
		return nil
	}, connectlimit.Interceptor(limiter))
	defer stop()

	for _, text := range []string{"orders", "orders", "guess", "orders"} {
		_ = say(client, text)
	}
	// Output:
	// orders
	// orders
	// not_found
	// resource_exhausted
}

// A call is charged ten hits before its handler, and what it has really cost after it.
func ExampleSetCost() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "rows", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(100)},
		Cost: func(core.Request) (int64, error) { return 10, nil },
	}}}))
	client, stop := start(func(ctx context.Context, _ string) error {
		d, _ := connectlimit.DecisionFrom(ctx)
		fmt.Println(d.Remaining, "rows are left")
		connectlimit.SetCost(ctx, 35) // the rows that the call has read
		return nil
	}, connectlimit.Interceptor(limiter))
	defer stop()

	_ = say(client, "hello")
	_ = say(client, "hello")
	// Output:
	// 90 rows are left
	// hello
	// 55 rows are left
	// hello
}

// A handler takes hits itself and denies the call.
func ExampleDeny() {
	exports := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "export", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1)}}}}))
	client, stop := start(func(ctx context.Context, text string) error {
		d, err := exports.Take(ctx, 1, core.Hit{Rule: "export", Key: text})
		if err == nil && !d.Allowed {
			return connectlimit.Deny(ctx, d)
		}
		return err
	})
	defer stop()

	_ = say(client, "orders")
	_ = say(client, "orders")
	// Output:
	// orders
	// resource_exhausted
}
