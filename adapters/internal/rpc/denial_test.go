package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/core"
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
		`{"title":"a","detail":7}`:         "the call is over a limit",
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

// A store's own deadline is not that of the call.
func TestDenialOfACallWhoseStoreFailed(t *testing.T) {
	for reason, want := range map[core.Reason]Code{core.ReasonFailed: Unavailable, core.ReasonBadRequest: InvalidArgument} {
		d := core.Decision{Reason: reason, Err: context.DeadlineExceeded}
		d.RetryAfter = time.Second
		if r := NewDenial(&d, core.Denial{}); r.Code != want || r.RetryAfter != 0 || len(r.Violations) != 0 {
			t.Errorf("%v: %+v", reason, r)
		}
	}
}

// gRPC refuses all metadata of a response because of one line that it does not allow.
func TestLinesThatCanBeMetadata(t *testing.T) {
	for _, name := range []string{"X-Tenant", "x_y", "x.y", "0", "retry-after", "cache-control", "x-bin-x", "binary", "contents", "the-trailer", "X-Grpc-Status", "tea", "az09"} {
		if len(allowedIn([]core.Header{{Name: name, Value: "v"}})) != 1 {
			t.Errorf("%s is left out", name)
		}
	}
	for _, name := range []string{
		"", "X Tenant", "x:y", ":path", "é", "x/y", "x\x00", "x\n", "x`", "x{", "x@", "x[",
		"Transfer-Encoding", "TE", "Connection", "Keep-Alive", "Upgrade", "Host", "Date", "User-Agent",
		"Content-Type", "Content-Length", "Connect-Timeout-Ms", "Grpc-Status", "grpc-message", "Trailer", "trailer-x", "Trailers", "X-Token-Bin", "x-bin",
	} {
		if len(allowedIn([]core.Header{{Name: name, Value: "v"}})) != 0 {
			t.Errorf("%q is a name of metadata", name)
		}
	}
	for _, value := range []string{"", " ", "~", "v w", "a,b"} {
		if len(allowedIn([]core.Header{{Name: "x", Value: value}})) != 1 {
			t.Errorf("the value %q is left out", value)
		}
	}
	for _, value := range []string{"\n", "a\r\nb", "\x00", "\t", "\x1f", "\x7f", "é", "\xff"} {
		if len(allowedIn([]core.Header{{Name: "x", Value: value}})) != 0 {
			t.Errorf("%q is a value of metadata", value)
		}
	}
}

func TestLinesKeepTheirOrder(t *testing.T) {
	got := allowedIn([]core.Header{{Name: "B", Value: "1"}, {Name: "Date", Value: "x"}, {Name: "a", Value: "2"}, {Name: "B", Value: "3"}})
	if len(got) != 3 || got[0].Value != "1" || got[1].Value != "2" || got[2].Value != "3" {
		t.Errorf("%v", got)
	}
}
