package rpc

import (
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// google/rpc/code.proto has these statuses in its comments.
var statusOf = map[Code]int{
	OK: 200, Canceled: 499, Unknown: 500, InvalidArgument: 400, DeadlineExceeded: 504, NotFound: 404, AlreadyExists: 409,
	PermissionDenied: 403, ResourceExhausted: 429, FailedPrecondition: 400, Aborted: 409, OutOfRange: 400,
	Unimplemented: 501, Internal: 500, Unavailable: 503, DataLoss: 500, Unauthenticated: 401,
}

func TestCodesAreThoseOfGRPC(t *testing.T) {
	for i, code := range []Code{
		OK, Canceled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied, ResourceExhausted,
		FailedPrecondition, Aborted, OutOfRange, Unimplemented, Internal, Unavailable, DataLoss, Unauthenticated,
	} {
		if code != Code(i) {
			t.Errorf("the code %d has the number %d", i, code)
		}
	}
}

func TestStatusOfACode(t *testing.T) {
	for code, want := range statusOf {
		if got := code.Status(); got != want {
			t.Errorf("code %d: status %d, want %d", code, got, want)
		}
	}
	for _, unknown := range []Code{17, 18, 1 << 31, 1<<32 - 1} {
		if got := unknown.Status(); got != http.StatusInternalServerError {
			t.Errorf("code %d: status %d, want that of Unknown", unknown, got)
		}
	}
}

func TestOutcomeOfAnEnd(t *testing.T) {
	for name, row := range map[string]struct {
		end                End
		status             int
		code               Code
		canceled, panicked bool
	}{
		"a success":                      {End{}, 200, OK, false, false},
		"a failure":                      {End{Code: NotFound}, 404, NotFound, false, false},
		"an unknown code":                {End{Code: 99}, 500, 99, false, false},
		"canceled":                       {End{Code: Canceled}, 499, Canceled, true, false},
		"a success nobody has seen":      {End{Ended: true}, 499, Canceled, true, false},
		"a failure nobody has seen":      {End{Code: NotFound, Ended: true}, 499, Canceled, true, false},
		"a panic":                        {End{Panicked: true}, 500, Internal, false, true},
		"a panic nobody has seen":        {End{Panicked: true, Ended: true}, 500, Internal, true, true},
		"a status of its own":            {End{Status: 304}, 304, OK, false, false},
		"a status of its own, not seen":  {End{Status: 304, Ended: true}, 499, Canceled, true, false},
		"a status of its own, canceled":  {End{Status: 304, Code: Canceled}, 499, Canceled, true, false},
		"a status of its own, and panic": {End{Status: 304, Panicked: true}, 500, Internal, false, true},
	} {
		o := row.end.Outcome()
		if o.Status != row.status || CodeOf(o) != row.code || o.Canceled != row.canceled || o.Panicked != row.panicked {
			t.Errorf("%s: %+v with code %d, want %+v", name, o, CodeOf(o), row)
		}
	}
}

func TestHeaderOfAnOutcome(t *testing.T) {
	o := End{Code: Aborted, Header: func(name string) string { return "the value of " + name }}.Outcome()
	for name, want := range map[string]string{"grpc-status": "10", "Grpc-Status": "10", "X-Other": "the value of X-Other"} {
		if got := o.Header(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	o = End{}.Outcome()
	if got := o.Header(StatusHeader) + o.Header("X-Other"); got != "0" {
		t.Errorf("without a header: %q", got)
	}
}

// An outcome of HTTP has no code, or a text in its place.
func TestCodeOfAnOutcomeOfAnother(t *testing.T) {
	header := func(value string) func(string) string { return func(string) string { return value } }
	for name, row := range map[string]struct {
		o    core.Outcome
		want Code
	}{
		"nothing":            {core.Outcome{}, Unknown},
		"nothing, a header":  {core.Outcome{Header: header("")}, Unknown},
		"200":                {core.Outcome{Status: 200}, OK},
		"399":                {core.Outcome{Status: 399, Header: header("")}, OK},
		"400":                {core.Outcome{Status: 400}, Unknown},
		"a text":             {core.Outcome{Status: 500, Header: header("x")}, Unknown},
		"a negative number":  {core.Outcome{Status: 500, Header: header("-1")}, Unknown},
		"too large a number": {core.Outcome{Status: 500, Header: header("4294967296")}, Unknown},
		"a number":           {core.Outcome{Status: 500, Header: header("5")}, NotFound},
	} {
		if got := CodeOf(row.o); got != row.want {
			t.Errorf("%s: code %d, want %d", name, got, row.want)
		}
	}
}
