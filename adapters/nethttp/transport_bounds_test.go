package httplimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
)

func TestTheTextOfADenial(t *testing.T) {
	for _, row := range []struct {
		want    string
		limiter bool // has denied the request
		held    bool
		reason  core.Reason
		retry   time.Duration
		err     error
	}{
		{`limiter "out", rule "host": over limit, retry after 3s`, true, false, core.ReasonOverLimit, 3 * time.Second, nil},
		{`limiter "out", rule "host": over limit`, true, false, core.ReasonOverLimit, core.Never, nil},
		{`limiter "": failed: broken`, false, false, core.ReasonFailed, 0, errors.New("broken")},
		{`the host has asked for a pause, retry after 1ns`, false, true, core.ReasonOverLimit, 1, nil},
	} {
		e := httplimit.DeniedError{Host: "a.example", Held: row.held}
		if row.limiter {
			e.Decision, _ = core.Must(core.New(core.Config{Name: "out", Rules: []core.Rule{{Name: "host", Limits: []core.Limit{core.PerHour(0)}}}})).Take(t.Context(), 1, core.Hit{Rule: "host"})
		}
		e.Decision.Reason, e.Decision.RetryAfter, e.Decision.Err = row.reason, row.retry, row.err
		if got := e.Error(); got != `httplimit: the request to "a.example" was not sent: `+row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
}

// The longest pause and the longest wait are taken, and so are the shortest. A request is
// held for as long as MaxHold, and no longer.
func TestTheBoundsOfPauses(t *testing.T) {
	for _, d := range []time.Duration{1, core.MaxWindow} {
		_ = httplimit.Transport(perTarget(0, core.PerHour(1)), nil, httplimit.ObeyRetryAfter(d), httplimit.MaxHold(d))
	}
	for pause, want := range map[string]int{"5": http.StatusOK, "6": 0} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			rt := httplimit.Transport(perTarget(0, core.PerHour(1000)), trips(func(*http.Request) (*http.Response, error) {
				if sent++; sent == 1 {
					return answer(429, "Retry-After", pause), nil
				}
				return answer(200), nil
			}), httplimit.ObeyRetryAfter(time.Minute), httplimit.MaxHold(5*time.Second))
			_, _ = send(t.Context(), t, rt, "http://a/")
			if status, denied := send(t.Context(), t, rt, "http://a/"); status != want {
				t.Errorf("a pause of %s s and a hold of 5 s: %d, %v, want %d", pause, status, denied, want)
			}
		})
	}
}

// A rule learns that base has failed, and whether the client had given up by then.
func TestTheOutcomeOfARequestWithoutAResponse(t *testing.T) {
	broken := errors.New("broken")
	for name, want := range map[string]core.Outcome{"fails": {Status: http.StatusBadGateway}, "canceled": {Status: core.StatusCanceled, Canceled: true}} {
		var got []core.Outcome
		limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
			Name: "host", Key: httplimit.TargetHost, Limits: []core.Limit{core.PerHour(1)},
			Counts: func(_ core.Request, o core.Outcome) bool { got = append(got, o); return true },
		}}}))
		ctx, cancel := context.WithCancel(t.Context())
		rt := httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) {
			if name == "canceled" {
				cancel()
			}
			return nil, broken
		}))
		_, err := rt.RoundTrip(request(ctx, t, "http://a/", nil))
		cancel()
		if !errors.Is(err, broken) || len(got) != 1 || got[0].Status != want.Status || got[0].Canceled != want.Canceled {
			t.Errorf("%s: %v, the rule learns %+v, want %+v", name, err, got, want)
		}
	}
}

// The Host of a request is the field if it is set, and the URL's host if not.
func TestTheHostHeaderOfAnOutgoingRequest(t *testing.T) {
	target := &url.URL{Scheme: "https", Host: "a.example:443"}
	for want, r := range map[string]*http.Request{
		"virtual.example": {URL: target, Host: "virtual.example"}, "a.example:443": {URL: target}, "": {},
	} {
		var got []string
		limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
			Name: "host", Limits: []core.Limit{core.PerHour(1)},
			Key: func(dst []byte, r core.Request) ([]byte, error) {
				got = r.HeaderValues("Host")
				return dst, nil
			},
		}}}))
		resp, err := httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) { return answer(200), nil })).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if len(got) != 1 || got[0] != want {
			t.Errorf("Host is %q, want %q", got, want)
		}
	}
}

// A slot is held while the response is being read, and free at its end or an error.
func TestASlotIsHeldWhileTheResponseIsRead(t *testing.T) {
	broken := errors.New("broken")
	for name, end := range map[string]error{"end": io.EOF, "error": broken} {
		limiter := perTarget(0, core.InFlight(1))
		parts := strings.NewReader("hello")
		rt := httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(io.MultiReader(parts, failing{end}))}, nil
		}))
		resp, err := rt.RoundTrip(request(t.Context(), t, "http://a/", nil))
		if err != nil {
			t.Fatal(err)
		}
		free := func() bool {
			d, err := limiter.Peek(t.Context(), 1, core.Hit{Rule: "host", Key: "a"})
			return err == nil && d.Allowed
		}
		if n, err := resp.Body.Read(make([]byte, 2)); n != 2 || err != nil || free() {
			t.Errorf("%s: after %d bytes, %v, the slot is free: %v", name, n, err, free())
		}
		if _, err := io.ReadAll(resp.Body); (err != nil) != (end != io.EOF) || !free() { //nolint:errorlint // the very value
			t.Errorf("%s: after the last byte, %v, the slot is free: %v", name, err, free())
		}
		_ = resp.Body.Close()
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
