// Package site is the handler of the program queue: a slow report behind a policy file, and a
// page that sends requests to it.
package site

import (
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

//go:embed limits.yaml
var limits []byte

// reportTakes is how long a report takes.
const reportTakes = 250 * time.Millisecond

// Site is the handler. Its methods may be called concurrently.
type Site struct {
	http.Handler
	limits *policy.Set
}

// New makes the handler. The requests of the page go through send.
func New(send http.RoundTripper) (*Site, error) {
	set, err := policy.Parse("limits.yaml", limits, policy.WithUser(user))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /report", httplimit.Middleware(set, httplimit.ExposeDecision())(http.HandlerFunc(report)))
	mux.Handle("POST /crowd", http.NewCrossOriginProtection().Handler(crowd{send}))
	servePage(mux)
	return &Site{mux, set}, nil
}

// Close closes the counters.
func (s *Site) Close() error { return s.limits.Close() }

// user returns who sends a request. A real application knows that from its authentication.
func user(r core.Request) string {
	if names := r.HeaderValues("X-User"); len(names) > 0 {
		return names[0]
	}
	return ""
}

// Report is what the slow endpoint answers.
type Report struct {
	Waited int64 `json:"waited"` // ms in line
	Ran    int64 `json:"ran"`    // ms
}

// report is slow, and says how long the request has waited before it.
func report(w http.ResponseWriter, r *http.Request) {
	done := time.NewTimer(reportTakes)
	defer done.Stop()
	begun := time.Now()
	select {
	case <-done.C:
	case <-r.Context().Done():
		return
	}
	d, _ := httplimit.DecisionFrom(r.Context())
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Report{d.Waited.Milliseconds(), time.Since(begun).Milliseconds()})
}

// address returns the address at which this server has got a request.
func address(r *http.Request) string {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return "localhost"
	}
	return a.String()
}
