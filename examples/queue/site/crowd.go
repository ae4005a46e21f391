package site

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// The requests of a crowd, and the time between two of them, so that they come in
// order.
const (
	crowdSize = 30
	apart     = 4 * time.Millisecond
)

// crowd sends requests for reports, all at about the same time, and writes a line of JSON for each
// when it ends. The page does not send them itself, because a browser opens only six
// connections to a server.
type crowd struct{ send http.RoundTripper }

// Result is how a request of the crowd has ended. All times are in milliseconds.
type Result struct {
	Number int    `json:"number"` // from 1, in the order in which they were sent
	Sent   int64  `json:"sent"`   // since the first was sent
	Took   int64  `json:"took"`   // from then to the answer
	Status int    `json:"status"` // 0: there was no answer
	Error  string `json:"error,omitempty"`
	Report
}

func (c crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	results := make(chan Result, crowdSize) // room for all, so that nobody is left behind
	go c.sendAll(ctx, "http://"+address(r)+"/report", r.FormValue("user"), results)
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	for range crowdSize {
		if out.Encode(<-results) != nil {
			return // the browser has gone
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// sendAll sends the requests. It gives a result for each of them, also if ctx ends.
func (c crowd) sendAll(ctx context.Context, url, user string, results chan<- Result) {
	begun := time.Now()
	tick := time.NewTicker(apart)
	defer tick.Stop()
	for i := range crowdSize {
		go func() {
			result := Result{Number: i + 1, Sent: time.Since(begun).Milliseconds()}
			c.ask(ctx, url, user, &result)
			result.Took = time.Since(begun).Milliseconds() - result.Sent
			results <- result
		}()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// ask asks for one report.
func (c crowd) ask(ctx context.Context, url, user string, result *Result) {
	err := func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		r.Header.Set("X-User", user)
		resp, err := c.send.RoundTrip(r)
		if err != nil {
			return err
		}
		if result.Status = resp.StatusCode; resp.StatusCode == http.StatusOK {
			err = json.NewDecoder(resp.Body).Decode(&result.Report)
		}
		return errors.Join(err, resp.Body.Close())
	}()
	if err != nil {
		result.Error = err.Error()
	}
}
