package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestCodeOfADenial(t *testing.T) {
	of := map[int]Code{
		400: InvalidArgument, 422: InvalidArgument, 401: Unauthenticated, 403: PermissionDenied, 404: NotFound, 409: Aborted,
		412: FailedPrecondition, 500: Internal, 501: Unimplemented, 503: Unavailable, 504: DeadlineExceeded,
	}
	by := map[core.Reason]Code{core.ReasonOverLimit: ResourceExhausted, core.ReasonBadRequest: InvalidArgument, core.ReasonFailed: Unavailable}
	for status := range 600 {
		for reason, want := range by {
			if chosen, ok := of[status]; ok {
				want = chosen
			}
			if got := codeOf(reason, status); got != want {
				t.Errorf("%v, status %d: code %d, want %d", reason, status, got, want)
			}
		}
	}
}

func TestMessageOfADenial(t *testing.T) {
	long := strings.Repeat("é", maxMessage)
	for body, want := range map[string]string{
		"":                                 "the call is over a limit",
		" \n":                              "the call is over a limit",
		" slow down\n":                     "slow down",
		`{"title":"a","detail":"b"}`:       "a: b",
		`{"title":"a"}`:                    "a",
		`{"detail":"b"}`:                   "b",
		`{"error":7}`:                      "the call is over a limit",
		`{"title":7}`:                      "the call is over a limit",
		`{"title":"a"`:                     "the call is over a limit",
		`["a"]`:                            `["a"]`,
		"\xff\xfe":                         "the call is over a limit",
		"a\xffb":                           "ab",
		"x" + long:                         "x" + strings.Repeat("é", maxMessage/2-1), // the last letter would be cut in two
		`{"title":"x","z":"` + long + `"}`: "x",
	} {
		if got := message([]byte(body), ResourceExhausted); got != want || !utf8.ValidString(got) {
			t.Errorf("%.40q: %.40q, want %.40q", body, got, want)
		}
	}
	if got := message(nil, PermissionDenied); got != "the call is denied" {
		t.Errorf("of another code: %q", got)
	}
}

func TestGivenUp(t *testing.T) {
	for _, row := range []struct {
		err  error
		code Code
		text string
	}{
		{nil, OK, ""},
		{errors.New("x"), OK, ""},
		{fmt.Errorf("waiting: %w", context.Canceled), Canceled, "the call was canceled before the limiter allowed it"},
		{fmt.Errorf("waiting: %w", context.DeadlineExceeded), DeadlineExceeded, "the deadline ended before the limiter allowed the call"},
	} {
		if code, text := GivenUp(row.err); code != row.code || text != row.text {
			t.Errorf("%v: %d, %q", row.err, code, text)
		}
	}
}

// denied returns the decision on the second call of a limiter with a limit of one, and the denial
// of the default hooks.
func denied(t *testing.T, limits ...core.Limit) (core.Decision, core.Denial) {
	t.Helper()
	l := floodgatetest.NewLimiter(t, floodgatetest.NewClock(), core.Config{Rules: []core.Rule{{Name: "key", Key: keyfuncs.Static(""), Limits: limits}}})
	r := floodgatetest.NewRequest("POST", "/a.B/C")
	l.Check(r)
	d := l.Check(r)
	if d.Allowed {
		t.Fatal("the second call is allowed")
	}
	return d, l.Deny(r, d)
}

func TestDenialOfACallOverALimit(t *testing.T) {
	d, denial := denied(t, core.Limit{Name: "burst", Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}, core.PerHour(100))
	denial.Header = append(denial.Header, core.Header{Name: "X-Tenant", Value: "t"})
	r := NewDenial(&d, denial)
	violations := []Violation{{Subject: "rule:key", ID: "burst", Quota: 1, Description: "the limit burst allows 1 per 10s"}}
	if r.Code != ResourceExhausted || r.RetryAfter != 10*time.Second || !slices.Equal(r.Violations, violations) {
		t.Errorf("%+v", r)
	}
	names := map[string]int{}
	for _, line := range r.Fields {
		names[strings.ToLower(line.Name)]++
	}
	if names["retry-after"] != 1 || names["ratelimit"] != 1 || names["x-tenant"] != 1 || names["content-type"] != 0 {
		t.Errorf("the fields are %v", r.Fields)
	}
	if !strings.Contains(r.Message, "10 s") {
		t.Errorf("the message is %q", r.Message)
	}
}

func TestDenialWithoutDetails(t *testing.T) {
	over, denial := denied(t, core.PerHour(1))
	never, ofNever := denied(t, core.PerHour(0))
	if r := NewDenial(&never, ofNever); r.Code != ResourceExhausted || r.RetryAfter != 0 || len(r.Violations) != 1 {
		t.Errorf("no wait helps: %+v", r)
	}
	forbidden := denial
	forbidden.Status = 403
	if r := NewDenial(&over, forbidden); r.Code != PermissionDenied || r.RetryAfter != 0 || len(r.Violations) != 0 {
		t.Errorf("a hook forbids: %+v", r)
	}
	for err, want := range map[error]Code{context.Canceled: Canceled, context.DeadlineExceeded: DeadlineExceeded} {
		d := over
		d.Err = fmt.Errorf("waiting: %w", err)
		if r := NewDenial(&d, denial); r.Code != want || r.RetryAfter != 0 || len(r.Violations) != 0 || strings.Contains(r.Message, "quota") {
			t.Errorf("the call was waiting: %+v", r)
		}
	}
	// The store's own deadline is not that of the call.
	for reason, want := range map[core.Reason]Code{core.ReasonFailed: Unavailable, core.ReasonBadRequest: InvalidArgument} {
		d := core.Decision{Reason: reason, Err: context.DeadlineExceeded}
		d.RetryAfter = time.Second
		if r := NewDenial(&d, core.Denial{}); r.Code != want || r.RetryAfter != 0 || len(r.Violations) != 0 {
			t.Errorf("%v: %+v", reason, r)
		}
	}
}
