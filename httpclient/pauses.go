package httpclient

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// hold returns when the host's pause is over, or the error of a denied request.
func (t *Transport) hold(ctx context.Context, host string) error {
	start := time.Now()
	for {
		end := t.pauses.end(host)
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); end.Sub(start) <= t.config.MaxHold && (!ok || !deadline.Before(end)) {
			select {
			case <-time.After(left):
				continue // the host may have asked for more meanwhile
			case <-ctx.Done():
				left = max(time.Until(end), 0)
			}
		}
		return &DeniedError{Host: host, Held: true, Decision: core.Decision{Reason: core.ReasonOverLimit, RetryAfter: left, Err: ctx.Err()}}
	}
}

// maxHosts is the most hosts whose pauses are remembered.
const maxHosts = 10_000

// pauses are the pauses that hosts have asked for. It may be used concurrently.
type pauses struct {
	mu   sync.Mutex
	ends map[string]time.Time
}

// end returns the end of the host's pause, the zero time for none.
func (p *pauses) end(host string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends[host]
}

// note remembers the pause that a response asks for, if any.
func (p *pauses) note(host string, resp *http.Response, longest time.Duration) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return
	}
	now := time.Now()
	end := now.Add(min(retryAfter(resp.Header, now), longest))
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ends) >= maxHosts {
		maps.DeleteFunc(p.ends, func(_ string, end time.Time) bool { return !now.Before(end) })
	}
	last, known := p.ends[host]
	if !end.After(now) || !end.After(last) || !known && len(p.ends) >= maxHosts {
		return
	}
	p.ends[host] = end
}

// retryAfter returns the wait of a Retry-After, or 0 if it has none that can be read. It
// compares a date with the Date of the response, so that the host's clock may be wrong.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := strings.Trim(header.Get("Retry-After"), " \t")
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(core.MaxWindow/time.Second))) * time.Second
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
