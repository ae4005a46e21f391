package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// The detail of a BadRequestError reaches the client whole, whatever
// characters it has, and however the error is wrapped.
func FuzzBadRequestDetail(f *testing.F) {
	for _, s := range []string{`the field "user\name" is missing`, "line\nbreak\x00\x1f\x7f", "\xff</script>\u2028", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, detail string) {
		fault := fmt.Errorf("around: %w", &core.BadRequestError{Detail: detail})
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Key: fails(fault), Limits: []core.Limit{core.PerHour(10)}}}}, newClock())
		r := &request{}
		d := l.Check(r)
		den := l.Deny(r, d)
		var body struct {
			Status int
			Detail string
		}
		if err := json.Unmarshal(den.Body, &body); err != nil {
			t.Fatalf("%s: %v", den.Body, err)
		}
		if want := string([]rune(detail)); den.Status != 400 || body.Status != 400 || body.Detail != want {
			t.Errorf("status %d, body %+v, want the detail %q", den.Status, body, want)
		}
		if !errors.Is(d.Err, core.ErrBadRequest) || !strings.Contains(d.Err.Error(), detail) {
			t.Errorf("error %v", d.Err)
		}
	})
}

// Nothing of an ordinary error reaches the client.
func TestABadRequestWithoutDetailTellsNothing(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Key: fails(fmt.Errorf("%w: secret", core.ErrBadRequest)), Limits: []core.Limit{core.PerHour(10)}}}}, newClock())
	r := &request{}
	if body := string(l.Deny(r, l.Check(r)).Body); strings.Contains(body, "secret") || !strings.Contains(body, "The request cannot be understood.") {
		t.Error(body)
	}
}

// If the keys of several rules are bad requests, the client is told the first.
func TestTheFirstBadRequestIsTold(t *testing.T) {
	bad := func(detail string) core.KeyFunc { return fails(&core.BadRequestError{Detail: detail}) }
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "a", Key: bad("the first"), Limits: []core.Limit{core.PerMinute(3)}},
		{Name: "b", Key: bad("the second"), Limits: []core.Limit{core.PerMinute(3)}},
	}}, newClock())
	d := l.Check(&request{})
	if body := string(l.Deny(&request{}, d).Body); !strings.Contains(body, "the first") {
		t.Errorf("%v: %s", d.Err, body)
	}
}

func ExampleBadRequestError() {
	tenant := func(dst []byte, r core.Request) ([]byte, error) {
		lines := r.HeaderValues("X-Tenant")
		if len(lines) != 1 {
			return dst, &core.BadRequestError{Detail: "the header X-Tenant must be given once"}
		}
		return append(dst, lines[0]...), nil
	}
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: tenant, Limits: []core.Limit{core.PerHour(10)}}}}))
	r := &request{}
	fmt.Printf("%s\n", limiter.Deny(r, limiter.Check(r)).Body)
	// Output: {"type":"about:blank","title":"Bad Request","status":400,"detail":"the header X-Tenant must be given once"}
}

// A handler of denied requests that writes its own body takes the status from the decision.
func TestTheStatusOfADecision(t *testing.T) {
	for want, rows := range map[int][]core.Decision{
		200: {{Allowed: true}, {Allowed: true, Reason: core.ReasonSkipped}, {Allowed: true, Reason: core.ReasonFailed}, {Allowed: true, Reason: core.ReasonOverLimit, DryRun: true}},
		400: {{Reason: core.ReasonBadRequest}},
		429: {{Reason: core.ReasonOverLimit}},
		503: {{Reason: core.ReasonFailed}, {Reason: core.ReasonCanceled}},
	} {
		for _, d := range rows {
			if got := d.Status(); got != want {
				t.Errorf("%v, allowed: %t: status %d, want %d", d.Reason, d.Allowed, got, want)
			}
		}
	}
}

func ExampleDecision_Status() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(1)}}}}))
	fmt.Println(limiter.Check(&request{}).Status(), limiter.Check(&request{}).Status())
	// Output: 200 429
}
