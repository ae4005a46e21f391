package httpclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/httpclient"
)

func pausing(c core.Checker, b base, longest, hold time.Duration) *httpclient.Transport {
	return core.Must(httpclient.New(httpclient.Config{Limiter: c, Base: b, MaxPause: longest, MaxHold: hold}))
}

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
		{"a leading zero", 429, func() []string { return []string{"Retry-After", "010"} }, 10 * time.Second},
		{"zero", 429, func() []string { return []string{"Retry-After", "0"} }, 0},
		{"fraction", 429, func() []string { return []string{"Retry-After", "1.5"} }, 0},
		{"too long", 429, func() []string { return []string{"Retry-After", "61"} }, time.Minute},
		{"overflows", 429, func() []string { return []string{"Retry-After", "99999999999999999999999"} }, time.Minute},
		{"date", 429, func() []string { return []string{"Retry-After", date(9 * time.Second)} }, 9 * time.Second},
		{"past date", 429, func() []string { return []string{"Retry-After", date(-9 * time.Second)} }, 0},
		{"far date", 429, func() []string { return []string{"Retry-After", "Fri Dec 31 23:59:59 9999"} }, time.Minute},
		{"date of a wrong clock", 429, func() []string {
			return []string{"Retry-After", date(time.Hour + 9*time.Second), "Date", date(time.Hour)}
		}, 9 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			asks := true
			rt := pausing(perHost(0, core.PerHour(1000)), func(r *http.Request) (*http.Response, error) {
				if asks && r.URL.Host == "a" {
					return answer(row.status, row.header()...), nil
				}
				return answer(200), nil
			}, time.Minute, 0)
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
				if status != 0 || !denied.Held || denied.Host != "a" || denied.Decision.Reason != core.ReasonOverLimit || denied.Decision.RetryAfter != time.Nanosecond {
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
		limiter := perHost(0, core.PerHour(1000))
		rt := pausing(limiter, func(*http.Request) (*http.Response, error) {
			if pause == 0 {
				return answer(200), nil
			}
			return answer(429, "Retry-After", strconv.Itoa(pause)), nil
		}, time.Minute, 4*time.Second)
		_, _ = send(t.Context(), t, rt, "http://a/")
		pause = 0
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if status, denied := send(ctx, t, rt, "http://a/"); status != 200 || time.Since(start) != 4*time.Second {
			t.Errorf("held: %d, %v after %v", status, denied, time.Since(start))
		}
		cancel()
		pause = 4
		_, _ = send(t.Context(), t, rt, "http://a/")
		pause, start = 0, time.Now()

		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		status, denied := send(ctx, t, rt, "http://a/")
		if cancel(); status != 0 || !denied.Held || time.Since(start) != 0 {
			t.Errorf("a context that is too short: %d, %v after %v", status, denied, time.Since(start))
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		status, denied = send(ctx, t, rt, "http://a/")
		if status != 0 || !denied.Held || !errors.Is(denied, context.Canceled) || time.Since(start) != time.Second ||
			denied.Decision.RetryAfter != 3*time.Second {
			t.Errorf("canceled: %d, %v after %v", status, denied, time.Since(start))
		}
		time.Sleep(3 * time.Second)
		pause = 5
		_, _ = send(t.Context(), t, rt, "http://a/")
		start = time.Now()
		if status, denied := send(t.Context(), t, rt, "http://a/"); status != 0 || !denied.Held || time.Since(start) != 0 {
			t.Errorf("longer than MaxHold: %d, %v after %v", status, denied, time.Since(start))
		}
		if d, err := limiter.Peek(t.Context(), 0, core.Hit{Rule: "host", Key: "a"}); err != nil || d.Remaining != 996 {
			t.Errorf("%d of 1000 are left, want 996: %v", d.Remaining, err)
		}
	})
}

// A host asks for a pause while a request waits for its turn. The request ends once, and stays
// charged.
func TestARequestInLineIsNotSentInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan core.Outcome, 2)
		limiter := core.Must(core.New(core.Config{MaxWait: 10 * time.Second, Rules: []core.Rule{{
			Name: "host", Key: httpclient.Host, Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}},
			Counts: func(_ core.Request, o core.Outcome) bool { ended <- o; return true },
		}}}))
		status := 429
		rt := pausing(limiter, func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return answer(status, "Retry-After", "60"), nil
		}, time.Hour, 0)
		go func() { _, _ = send(t.Context(), t, rt, "http://a/") }()
		synctest.Wait()
		if status, denied := send(t.Context(), t, rt, "http://a/"); status != 0 || !denied.Held {
			t.Errorf("%d, %v", status, denied)
		}
		if first, second := <-ended, <-ended; first.Status != 429 || second.Status != http.StatusBadGateway {
			t.Errorf("the requests have ended with %+v and %+v", first, second)
		}
		if d, err := limiter.Peek(t.Context(), 1, core.Hit{Rule: "host", Key: "a"}); err != nil || d.Allowed {
			t.Errorf("%v, %v", d, err)
		}
		time.Sleep(time.Minute)
		status = 200
		for range 2 { // without a pause, the second is sent after its wait
			if status, denied := send(t.Context(), t, rt, "http://a/"); status != 200 {
				t.Errorf("without a pause: %v", denied)
			}
		}
	})
}

// Answers to requests that were under way at the same time come in any order.
func TestTheLatestPauseOfAHostCounts(t *testing.T) {
	for _, row := range []struct {
		first, second string
		want          time.Duration
	}{{"8", "3", 7 * time.Second}, {"3", "8", 8 * time.Second}} { // the second comes a second later
		synctest.Test(t, func(t *testing.T) {
			rt := pausing(perHost(0, core.PerHour(1000)), func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/second" {
					time.Sleep(2 * time.Second)
					return answer(429, "Retry-After", row.second), nil
				}
				time.Sleep(time.Second)
				return answer(429, "Retry-After", row.first), nil
			}, time.Minute, 0)
			done := make(chan bool)
			for _, path := range []string{"/first", "/second"} {
				go func() { _, _ = send(t.Context(), t, rt, "http://a"+path); done <- true }()
			}
			<-done
			<-done
			if _, denied := send(t.Context(), t, rt, "http://a/"); denied == nil || denied.Decision.RetryAfter != row.want {
				t.Errorf("%v: %v", row, denied)
			}
		})
	}
}

// A pause gets longer while a request is held back: MaxHold is for all of its wait.
func TestAPauseThatGetsTooLongEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := pausing(perHost(0, core.PerHour(1000)), func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				time.Sleep(3 * time.Second)
			}
			return answer(429, "Retry-After", "4"), nil
		}, time.Minute, 5*time.Second)
		slow := make(chan bool)
		go func() { defer close(slow); _, _ = send(t.Context(), t, rt, "http://a/slow") }()
		synctest.Wait()
		_, _ = send(t.Context(), t, rt, "http://a/")
		start := time.Now()
		status, denied := send(t.Context(), t, rt, "http://a/")
		if denied == nil {
			t.Fatalf("status %d", status)
		}
		if status != 0 || !denied.Held || time.Since(start) != 4*time.Second || denied.Decision.RetryAfter != 3*time.Second {
			t.Errorf("%d, %v after %v", status, denied, time.Since(start))
		}
		<-slow
	})
}

// While the pauses of 10,000 hosts last, those of further hosts are ignored. A pause of one of them can get longer.
func TestThePausesOfManyHostsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := pausing(perHost(0, core.PerHour(1<<30)), func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				time.Sleep(time.Second)
			}
			return answer(429, "Retry-After", r.URL.Query().Get("for")), nil
		}, time.Hour, 0)
		held := func(url string) bool {
			_, denied := send(t.Context(), t, rt, url)
			return denied != nil
		}
		go held("http://host0/slow?for=40")
		synctest.Wait()
		held("http://first/?for=10")
		for i := range 9_999 {
			held(fmt.Sprintf("http://host%d/?for=20", i))
		}
		if held("http://more/?for=20"); held("http://more/?for=20") || !held("http://first/") || !held("http://host9998/") {
			t.Error("the pause of one host too many is remembered")
		}
		time.Sleep(10 * time.Second)
		if held("http://more/?for=20"); !held("http://more/?for=20") || held("http://first/?for=20") || !held("http://host0/") {
			t.Error("a pause that has ended is remembered")
		}
		time.Sleep(20 * time.Second)
		if held("http://first/?for=20"); !held("http://first/") || !held("http://host0/") || held("http://host1/") || held("http://more/") {
			t.Error("all pauses have ended but two")
		}
	})
}
