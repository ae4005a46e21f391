package rpc

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// settling is a limiter that records what became of its decisions. Each call has an outcome.
type settling struct {
	*core.Limiter
	outcomes []core.Outcome
}

func newSettling(t *testing.T, limits ...core.Limit) *settling {
	t.Helper()
	s := &settling{}
	s.Limiter = floodgatetest.NewLimiter(t, floodgatetest.NewClock(), core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: limits, Cost: func(core.Request) (int64, error) { return 1, nil },
		Counts: func(core.Request, core.Outcome) bool { return true },
	}}})
	return s
}

func (s *settling) Settle(r core.Request, d core.Decision, o core.Outcome) {
	s.outcomes = append(s.outcomes, o)
	s.Limiter.Settle(r, d, o)
}

func (s *settling) statuses() (all []int) {
	for _, o := range s.outcomes {
		all = append(all, o.Status)
	}
	return all
}

func enter(s *settling, outer *Call) *Call {
	r := floodgatetest.NewRequest("POST", "/a.B/C")
	return Enter(s, r, s.Check(r), outer)
}

func equal(t *testing.T, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

func TestACallIsSettledOnce(t *testing.T) {
	s := newSettling(t, core.PerHour(9))
	c := enter(s, nil)
	if !c.NeedsOutcome() {
		t.Fatal("there is nothing to settle")
	}
	c.Settle(End{}.Outcome())
	c.Settle(End{Code: Internal}.Outcome())
	c.End(End{Code: NotFound}.Outcome())
	c.End(End{Code: Aborted}.Outcome())
	if equal(t, s.statuses(), 200); c.NeedsOutcome() {
		t.Error("there is something to settle")
	}
}

// A message that is decided on after the end of its stream has the outcome of the stream.
func TestMessagesOfACall(t *testing.T) {
	s := newSettling(t, core.PerHour(9))
	c := enter(s, nil)
	r := floodgatetest.NewRequest("POST", "/a.B/C")
	c.Settle(End{}.Outcome())
	second := s.Check(r)
	c.Next(r, second)
	if d, ok := c.Last(); !ok || d.Remaining != second.Remaining {
		t.Errorf("the last decision is %v, want %v", d, second)
	}
	c.End(End{Code: NotFound}.Outcome())
	c.Next(r, s.Check(r))
	if equal(t, s.statuses(), 200, 404, 404); c.NeedsOutcome() {
		t.Error("there is something to settle")
	}
	if d, _ := c.Last(); d.Remaining != second.Remaining {
		t.Errorf("after the end, the last decision is %v, want %v", d, second)
	}
}

// After a message that was denied, none is received, also if the limiter would allow it.
func TestADeniedMessageIsTheLast(t *testing.T) {
	own := errors.New("denied")
	s := newSettling(t, core.PerHour(1))
	m := Messages{Call: enter(s, nil)}
	received := 0
	for i, want := range []error{nil, own, own} {
		err := m.Receive(func() error { received++; return nil }, floodgatetest.NewRequest("POST", "/a.B/C"), func(*core.Decision) error {
			s.Limiter = newSettling(t, core.PerHour(9)).Limiter
			return own
		})
		if !errors.Is(err, want) || received != min(i+1, 2) {
			t.Errorf("message %d: %v, want %v; %d are received", i, err, want, received)
		}
	}
}

// A decision that needs no outcome replaces one that did.
func TestAMessageThatNeedsNoOutcome(t *testing.T) {
	s := newSettling(t, core.PerHour(9))
	c := enter(s, nil)
	c.Settle(End{}.Outcome())
	c.Next(floodgatetest.NewRequest("POST", "/a.B/C"), core.Decision{Allowed: true})
	if c.NeedsOutcome() {
		t.Error("there is something to settle")
	}
	c.End(End{}.Outcome())
	equal(t, s.statuses(), 200)
}

// The cost of a call concerns all its limiters, also those before and after one that has no use for it.
func TestCostOfACall(t *testing.T) {
	a, b := newSettling(t, core.PerHour(9)), newSettling(t, core.PerHour(9))
	useless := func(outer *Call) *Call {
		return Enter(b, floodgatetest.NewRequest("POST", "/a.B/C"), core.Decision{Allowed: true}, outer)
	}
	c := enter(a, useless(nil))
	c = enter(b, c)
	c = useless(c)
	if useless(nil).SetCost(4) || !c.SetCost(4) {
		t.Fatal("the cost concerns a rule without one, or none")
	}
	for ; c != nil; c = c.outer {
		c.End(End{}.Outcome())
	}
	for _, s := range []*settling{a, b} {
		d, err := s.Peek(context.Background(), 0, core.Hit{Rule: "r"})
		if err != nil || d.Remaining != 5 {
			t.Errorf("%v, %v; want 5 hits left", d, err)
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
		"an unknown code":                {End{Code: 17}, 500, 17, false, false},
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
