package outcome

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestOutcome(t *testing.T) {
	for _, row := range []struct {
		response           Response
		status             int
		canceled, panicked bool
	}{
		{Response{}, 200, false, false},
		{Response{Status: 404}, 404, false, false},
		{Response{Status: 200, Ended: true}, 499, true, false},
		{Response{Ended: true}, 499, true, false},
		{Response{Panicked: true}, 500, false, true},
		{Response{Status: 201, Panicked: true}, 201, false, true},
		{Response{Panicked: true, Ended: true}, 500, true, true},
		{Response{Status: 201, Panicked: true, Ended: true}, 201, true, true},
	} {
		o := row.response.Outcome()
		if o.Status != row.status || o.Canceled != row.canceled || o.Panicked != row.panicked {
			t.Errorf("%+v becomes %+v", row.response, o)
		}
	}
}

// A middleware behind the limiter cancels its context when the handler returns. That is not a
// client that has gone away. A deadline that has passed is the end of the request.
func TestACanceledContextBehindTheLimiterHasNotEnded(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	for _, row := range []struct {
		name          string
		before, after context.Context
		want          bool
	}{
		{"both go on", t.Context(), t.Context(), false},
		{"the request's context is canceled", canceled, canceled, true},
		{"the request's deadline has passed", late, late, true},
		{"only the handler's context is canceled", t.Context(), canceled, false},
		{"only the handler's deadline has passed", t.Context(), late, true},
	} {
		if got := Ended(row.before, row.after); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestIsContextError(t *testing.T) {
	for err, want := range map[error]bool{
		context.Canceled: true, context.DeadlineExceeded: true, fmt.Errorf("query: %w", context.Canceled): true, errors.New("other"): false,
	} {
		if IsContextError(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
	if IsContextError(nil) {
		t.Error("nil is a context error")
	}
}
