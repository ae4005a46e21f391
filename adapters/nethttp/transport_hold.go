package httplimit

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// TransportOption is an option of [Transport]: [ObeyRetryAfter] or [MaxHold].
type TransportOption func(*holds)

// ObeyRetryAfter makes a [Transport] obey the Retry-After, in seconds or as a date, of a
// response with the status 429 or 503. Until then, requests to the same host (see
// [TargetHost]) are denied, or held back if there is a [MaxHold]. A Retry-After of more
// than longest counts as longest, so that no host can stop a client for good. longest is
// above 0 and at most 366 days.
//
// A date is compared with the Date of the response, if there is one, and else with the
// clock of the process. Other values are ignored. The latest pause of a host counts.
// The Transport remembers the pauses of at most 10,000 hosts; of more, those that end last.
func ObeyRetryAfter(longest time.Duration) TransportOption {
	if longest <= 0 || longest > core.MaxWindow {
		panic(fmt.Sprintf("httplimit: ObeyRetryAfter: %v: must be above 0 and at most 366 days", longest))
	}
	return func(h *holds) { h.longest = longest }
}

// MaxHold makes a request wait for the end of the pause that its host has asked for, if
// that takes at most wait and not longer than the context of the request. Otherwise the
// request is denied at once. Requests that were held ask the limiter after the pause.
// wait is above 0 and at most 366 days. MaxHold is for [ObeyRetryAfter] only: Transport
// panics if that is missing.
func MaxHold(wait time.Duration) TransportOption {
	if wait <= 0 || wait > core.MaxWindow {
		panic(fmt.Sprintf("httplimit: MaxHold: %v: must be above 0 and at most 366 days", wait))
	}
	return func(h *holds) { h.patience = wait }
}

// holds has the pauses that hosts have asked for. It may be used concurrently.
type holds struct {
	longest  time.Duration // 0: no Retry-After is obeyed
	patience time.Duration // the longest wait of a request

	mu     sync.Mutex
	pauses pauses
}

func (h *holds) mustBeWhole() {
	if h.patience > 0 && h.longest == 0 {
		panic("httplimit: Transport: MaxHold needs ObeyRetryAfter")
	}
}

// wait returns when the host's pause is over, or the error of a denied request.
func (h *holds) wait(ctx context.Context, host string) error {
	if h.longest == 0 {
		return nil
	}
	start := time.Now()
	for {
		now := time.Now()
		end := h.end(host, now)
		if end.IsZero() {
			return nil
		}
		left := end.Sub(now)
		if deadline, ok := ctx.Deadline(); end.Sub(start) > h.patience || ok && deadline.Before(end) {
			return held(host, left, now.Sub(start), ctx.Err())
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C: // the host may have asked for more meanwhile
		case <-ctx.Done():
			timer.Stop()
			return held(host, time.Until(end), time.Since(start), ctx.Err())
		}
	}
}

func held(host string, left, waited time.Duration, err error) error {
	e := &DeniedError{Host: host, Held: true, Waited: waited}
	e.Decision.Reason, e.Decision.Err, e.Decision.RetryAfter = core.ReasonOverLimit, err, max(left, 0)
	return e
}

// end returns the end of the host's pause, or the zero time if there is none.
func (h *holds) end(host string, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pauses.end(host, now)
}

// note remembers the pause that a response asks for.
func (h *holds) note(host string, resp *http.Response) {
	if h.longest == 0 || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return
	}
	now := time.Now()
	pause := min(retryAfter(resp.Header, now), h.longest)
	if pause <= 0 {
		return
	}
	end := now.Add(pause)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pauses.note(host, end, now)
}

// retryAfter returns the wait of a Retry-After, or 0 if it has none that can be read.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.Trim(header.Get("Retry-After"), " \t")
	if text == "" {
		return 0
	}
	if strings.Trim(text, "0123456789") == "" {
		const most = int64(core.MaxWindow / time.Second)
		seconds := int64(0)
		for i := 0; i < len(text) && seconds <= most; i++ {
			seconds = 10*seconds + int64(text[i]-'0')
		}
		return time.Duration(min(seconds, most)) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return at.Sub(date)
	}
	return at.Sub(now)
}
