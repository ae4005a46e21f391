package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
)

func TestAPauseThatAHostAsksForIsObeyed(t *testing.T) {
	date := func(after time.Duration) string { return time.Now().Add(after).UTC().Format(http.TimeFormat) }
	for _, row := range []struct {
		name   string
		status int
		header func() []string
		pause  time.Duration
	}{
		{"seconds", 429, func() []string { return []string{"Retry-After", "7"} }, 7 * time.Second},
		{"seconds of 503", 503, func() []string { return []string{"Retry-After", " 7 "} }, 7 * time.Second},
		{"another status", 500, func() []string { return []string{"Retry-After", "7"} }, 0},
		{"nothing", 429, func() []string { return nil }, 0},
		{"zero", 429, func() []string { return []string{"Retry-After", "0"} }, 0},
		{"negative", 429, func() []string { return []string{"Retry-After", "-7"} }, 0},
		{"fraction", 429, func() []string { return []string{"Retry-After", "1.5"} }, 0},
		{"too long", 429, func() []string { return []string{"Retry-After", "61"} }, time.Minute},
		{"overflows", 429, func() []string { return []string{"Retry-After", "99999999999999999999999"} }, time.Minute},
		{"date", 429, func() []string { return []string{"Retry-After", date(9 * time.Second)} }, 9 * time.Second},
		{"past date", 429, func() []string { return []string{"Retry-After", date(-9 * time.Second)} }, 0},
		{"far date", 429, func() []string { return []string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"} }, time.Minute},
		{"date of a wrong clock", 429, func() []string {
			return []string{"Retry-After", date(time.Hour + 9*time.Second), "Date", date(time.Hour)}
		}, 9 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			asks := true
			rt := httplimit.Transport(perTarget(0, core.PerHour(1000)), trips(func(r *http.Request) (*http.Response, error) {
				if asks && r.URL.Host == "a" {
					return answer(row.status, row.header()...), nil
				}
				return answer(200), nil
			}), httplimit.ObeyRetryAfter(time.Minute))
			if status, _ := send(t.Context(), t, rt, "http://a/"); status != row.status {
				t.Fatalf("%s: %d", row.name, status)
			}
			asks = false
			if status, _ := send(t.Context(), t, rt, "http://b/"); status != 200 {
				t.Errorf("%s: another host is held", row.name)
			}
			if row.pause > 0 {
				time.Sleep(row.pause - time.Nanosecond)
				status, denied := send(t.Context(), t, rt, "http://A:80/")
				if status != 0 || !denied.Held || denied.Host != "a" || denied.Decision.RetryAfter != time.Nanosecond {
					t.Errorf("%s: %d, %v at the end of the pause", row.name, status, denied)
				}
				time.Sleep(time.Nanosecond)
			}
			if status, denied := send(t.Context(), t, rt, "http://a/"); status != 200 {
				t.Errorf("%s: after the pause: %v", row.name, denied)
			}
		})
	}
}

func TestARequestIsHeldBackUntilThePauseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pause := 4
		limiter := perTarget(0, core.PerHour(1000))
		rt := httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) {
			if pause == 0 {
				return answer(200), nil
			}
			return answer(429, "Retry-After", strconv.Itoa(pause)), nil
		}), httplimit.ObeyRetryAfter(time.Minute), httplimit.MaxHold(5*time.Second))
		_, _ = send(t.Context(), t, rt, "http://a/")
		pause = 0
		start := time.Now()
		if status, denied := send(t.Context(), t, rt, "http://a/"); status != 200 || time.Since(start) != 4*time.Second {
			t.Errorf("held: %d, %v after %v", status, denied, time.Since(start))
		}
		pause = 4
		_, _ = send(t.Context(), t, rt, "http://a/")
		pause, start = 0, time.Now()

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		status, denied := send(ctx, t, rt, "http://a/")
		if cancel(); status != 0 || !denied.Held || time.Since(start) != 0 {
			t.Errorf("a context that is too short: %d, %v after %v", status, denied, time.Since(start))
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		status, denied = send(ctx, t, rt, "http://a/")
		if status != 0 || !denied.Held || !errors.Is(denied, context.Canceled) || time.Since(start) != time.Second ||
			denied.Waited != time.Second || denied.Decision.RetryAfter != 3*time.Second {
			t.Errorf("canceled: %d, %v after %v", status, denied, time.Since(start))
		}
		time.Sleep(3 * time.Second)
		pause = 6
		_, _ = send(t.Context(), t, rt, "http://a/")
		start = time.Now()
		if status, denied := send(t.Context(), t, rt, "http://a/"); status != 0 || !denied.Held || time.Since(start) != 0 {
			t.Errorf("longer than MaxHold: %d, %v after %v", status, denied, time.Since(start))
		}
		if s := limiter.Stats(); s.Allowed != 4 {
			t.Errorf("%d were charged, want 4", s.Allowed)
		}
	})
}

// A host asks for a pause while a request stands in the limiter's line.
func TestARequestInLineIsGivenBackIfItsHostAsksForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := perTarget(10*time.Second, core.Limit{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}, core.InFlight(2))
		sent := 0
		rt := httplimit.Transport(limiter, trips(func(*http.Request) (*http.Response, error) {
			sent++
			time.Sleep(time.Second)
			return answer(429, "Retry-After", "60"), nil
		}), httplimit.ObeyRetryAfter(time.Hour))
		done := make(chan *httplimit.DeniedError)
		go func() { _, _ = send(t.Context(), t, rt, "http://a/"); done <- nil }()
		synctest.Wait()
		go func() { _, denied := send(t.Context(), t, rt, "http://a/"); done <- denied }()
		<-done
		denied := <-done
		if denied == nil || !denied.Held || sent != 1 {
			t.Fatalf("%v, %d sent", denied, sent)
		}
		d, err := limiter.Peek(t.Context(), 1, core.Hit{Rule: "host", Key: "a"})
		if err != nil || !d.Allowed {
			t.Errorf("the request that was not sent is charged: %v, %v", d, err)
		}
	})
}

func TestWhatATransportCannotBeMadeOf(t *testing.T) {
	limiter := perTarget(0, core.PerHour(1))
	for name, f := range map[string]func(){
		"nil checker":              func() { httplimit.Transport(nil, nil) },
		"nil option":               func() { httplimit.Transport(limiter, nil, nil) },
		"MaxHold alone":            func() { httplimit.Transport(limiter, nil, httplimit.MaxHold(time.Second)) },
		"no longest":               func() { httplimit.ObeyRetryAfter(0) },
		"a longest that is longer": func() { httplimit.ObeyRetryAfter(core.MaxWindow + 1) },
		"no wait":                  func() { httplimit.MaxHold(0) },
		"a wait that is longer":    func() { httplimit.MaxHold(core.MaxWindow + 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Answers to requests that were under way at the same time come in any order.
func TestTheLatestPauseOfAHostCounts(t *testing.T) {
	for _, pauses := range [][2]string{{"8", "3"}, {"3", "8"}} {
		synctest.Test(t, func(t *testing.T) {
			rt := httplimit.Transport(perTarget(0, core.PerHour(1000)), trips(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/second" {
					time.Sleep(2 * time.Second)
					return answer(429, "Retry-After", pauses[1]), nil
				}
				time.Sleep(time.Second)
				return answer(429, "Retry-After", pauses[0]), nil
			}), httplimit.ObeyRetryAfter(time.Minute))
			done := make(chan bool)
			for _, path := range []string{"/first", "/second"} {
				go func() { _, _ = send(t.Context(), t, rt, "http://a"+path); done <- true }()
			}
			<-done
			<-done
			want := 7 * time.Second // of the first answer, a second later
			if pauses[1] == "8" {
				want = 8 * time.Second
			}
			if _, denied := send(t.Context(), t, rt, "http://a/"); denied == nil || denied.Decision.RetryAfter != want {
				t.Errorf("%v: %v", pauses, denied)
			}
		})
	}
}
