// Package replay runs a policy file over access logs in the logs' own time, and reports which
// requests would have been denied. Its memory is bounded, however long the logs are.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// Config configures a replay.
type Config struct {
	// Name and Text are those of the policy file.
	Name string
	Text []byte
	// Fields are the fields of JSON lines; nil: the usual ones.
	Fields accesslog.Fields
	// HonestPerMinute is the most requests of an honest client a minute; 1 or more.
	HonestPerMinute int64
	// Sweep tries other quotas too, which takes ten times as long.
	Sweep bool
}

// Replay is a replay under way. Its methods may not be called concurrently.
type Replay struct {
	config  Config
	now     time.Time // of the newest request so far
	request request
	memory  *core.Memory
	set     *policy.Set
	sweep   sweep    // nil: none
	dry     []string // the policies that would have denied the request

	report   Report
	policies map[string]*PolicyReport
	keys     *tally[keyCount]
	routes   *tally[keyCount]
	clients  *tally[clientCount]
}

// clientCount counts the requests of one client, and those in a minute of the clock.
type clientCount struct {
	requests, denied int64
	minute, inMinute int64
	busiest          int64
}

// The most keys, clients and routes that are counted.
const (
	maxKeys   = 500_000
	maxRoutes = 10_000
)

// New makes a replay. The errors are those of the policy file.
func New(c Config) (*Replay, error) {
	r := &Replay{
		config: c, request: request{missing: map[string]bool{}}, report: Report{File: c.Name, WholeSeconds: true}, policies: map[string]*PolicyReport{},
		keys: newTally[keyCount](maxKeys), routes: newTally[keyCount](maxRoutes), clients: newTally[clientCount](maxKeys),
	}
	if err := r.load(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	for _, p := range r.set.Policies() {
		r.policies[p.Name] = &PolicyReport{Policy: p.Name, DryRun: p.DryRun}
		if p.Wait > 0 && !p.DryRun {
			r.report.Waits = append(r.report.Waits, p.Name)
		}
	}
	return r, nil
}

// load loads the policy file. It counts in memory, and its clock shows the log's time.
func (r *Replay) load() (err error) {
	clock := func() time.Time { return r.now }
	if r.memory, err = core.NewMemory(core.MemoryConfig{Clock: clock}); err != nil {
		return err
	}
	opts := []policy.Option{
		policy.Log(slog.New(slog.DiscardHandler)), // a request of a log lacks what a server would see
		policy.WithoutWaiting(),
		policy.WithUser(func(core.Request) string {
			if r.request.entry.User == "" {
				r.request.lacks("the user of some requests")
			}
			return r.request.entry.User
		}),
		policy.WithTier(func(core.Request) (string, error) {
			r.request.lacks("tier")
			return "", nil
		}),
	}
	if r.config.Sweep {
		if r.sweep, err = newSweep(r.config.Name, r.config.Text, clock, opts); err != nil {
			return err
		}
	}
	opts = append(opts, policy.WithStore(&countingStore{r.memory, r.keys}), policy.OnDisallowed(r.dryRunDenied))
	r.set, err = policy.Parse(r.config.Name, r.config.Text, opts...)
	return err
}

// dryRunDenied notes the policies that would have denied a request.
func (r *Replay) dryRunDenied(_ core.Request, d core.Decision, denial core.Denial) core.Denial {
	if d.DryRun {
		for s := range d.Limits() {
			if name := r.set.PolicyOf(s.Rule); !s.Allowed && !slices.Contains(r.dry, name) {
				r.dry = append(r.dry, name)
			}
		}
	}
	return denial
}

// Close closes everything that New opened.
func (r *Replay) Close() error {
	err := r.sweep.close()
	if r.set != nil {
		err = errors.Join(err, r.set.Close())
	}
	return errors.Join(err, r.memory.Close())
}

// maxSamples is how many lines that could not be read are shown.
const maxSamples = 20

// Run replays a log. Logs must be run in the order of their times, the oldest first. A line that
// cannot be read is counted. Run returns the error of reading the log, or ctx's. A log with lines
// of which none can be read is an error. A log without lines is no error, because it may have just
// been rotated.
func (r *Replay) Run(ctx context.Context, name string, log io.Reader) error {
	r.report.Logs = append(r.report.Logs, name)
	lines, malformed := r.report.Lines, r.report.Malformed
	var wrong error // of the first line that cannot be read
	err := accesslog.Lines(log, func(number int, line []byte) error {
		r.report.Lines++
		text := string(line)
		entry, err := accesslog.Parse(text, r.config.Fields)
		if err == nil {
			r.decide(&entry)
			return ctx.Err()
		}
		if r.report.Malformed++; len(r.report.Samples) < maxSamples {
			r.report.Samples = append(r.report.Samples, Sample{name, number, text[:min(len(text), 200)], err.Error()})
		}
		if wrong == nil {
			wrong = unreadable(number, text, err)
		}
		return ctx.Err()
	})
	if n := r.report.Lines - lines; err == nil && n > 0 && r.report.Malformed-malformed == n {
		err = fmt.Errorf("none of its lines (%d) is a line of an access log: %w", n, wrong)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// unreadable returns an error that describes a line that cannot be read.
func unreadable(number int, text string, err error) error {
	want := accesslog.Formats
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		want += "; --fields names the fields of other JSON"
	}
	return fmt.Errorf("line %d, %.100q, %w (want %s)", number, text, err, want)
}

// decide has the policies decide on a request.
func (r *Replay) decide(e *accesslog.Entry) {
	rep, at := &r.report, e.Time
	rep.Requests++
	rep.WholeSeconds = rep.WholeSeconds && at.Nanosecond() == 0
	if rep.Requests == 1 {
		rep.From, r.now = at, at
	}
	if at.Before(r.now) {
		rep.OutOfOrder++
		rep.LongestBack = max(rep.LongestBack, r.now.Sub(at))
	} else {
		r.now = at
	}
	if at.Before(rep.From) {
		rep.From = at
	}
	r.request.set(*e)
	r.dry = r.dry[:0]
	d := check(r.set, &r.request)
	for _, name := range r.dry {
		r.policies[name].DryRunDenied++
	}
	point, route, client := rep.Series.at(r.now), r.routes.at(routeOf(e.Method, r.request.rawPath)), r.clients.at(r.request.client())
	route.requests++
	client.requests++
	if minute := r.now.Unix() / 60; minute != client.minute {
		client.minute, client.inMinute = minute, 0
	}
	client.inMinute++
	client.busiest = max(client.busiest, client.inMinute)
	if len(r.dry) > 0 {
		rep.DryRunDenied++
		point.DryRunDenied++
	}
	if d.Allowed {
		rep.Allowed++
		point.Allowed++
	} else {
		rep.Denied++
		point.Denied++
		route.denied++
		client.denied++
		if d.Reason == core.ReasonBadRequest {
			rep.Bad++ // no limit has denied it, not even that of d.Rule
		} else if p := r.policies[r.set.PolicyOf(d.Rule())]; p != nil {
			p.Denied++
		}
	}
	r.sweep.check(&r.request)
}

// check has a checker decide on a request, and ends the request at once.
func check(c core.Checker, r *request) core.Decision {
	d := c.Check(r)
	if d.NeedsOutcome() {
		c.Settle(r, d, core.Outcome{})
	}
	return d
}

// Report returns the results so far.
func (r *Replay) Report() *Report {
	rep := r.report
	rep.To = r.now
	rep.WholeSeconds = rep.WholeSeconds && rep.Requests > 0
	rep.Missing = slices.Sorted(maps.Keys(r.request.missing))
	for _, p := range r.set.Policies() {
		rep.Policies = append(rep.Policies, *r.policies[p.Name])
	}
	denied := func(c *keyCount) int64 { return c.denied }
	for _, id := range r.keys.top(denied) {
		rule, key, _ := strings.Cut(id, separator)
		key = strings.TrimSuffix(key, "\x00") // which the core adds
		rep.Keys = append(rep.Keys, KeyReport{r.set.PolicyOf(rule), rule, key, r.keys.values[id].requests, r.keys.values[id].denied})
	}
	rep.KeysMissed = r.keys.missed
	for _, route := range r.routes.top(denied) {
		rep.Routes = append(rep.Routes, RouteReport{route, r.routes.values[route].requests, r.routes.values[route].denied})
	}
	rep.Series.Points = slices.Clone(rep.Series.Points)
	rep.Clients = r.clientReport()
	rep.Sweeps = r.sweep.curves()
	return &rep
}

func (r *Replay) clientReport() ClientReport {
	rep := ClientReport{Clients: len(r.clients.values), HonestPerMinute: r.config.HonestPerMinute, Missed: r.clients.missed}
	honest := func(c *clientCount) int64 {
		if c.busiest > rep.HonestPerMinute {
			return 0
		}
		return c.denied
	}
	for _, c := range r.clients.values {
		if c.denied > 0 {
			rep.Denied++
		}
		if n := honest(c); n > 0 {
			rep.Honest++
			rep.HonestDenied += n
		}
	}
	for _, client := range r.clients.top(honest) {
		c := r.clients.values[client]
		rep.Examples = append(rep.Examples, ClientExample{client, c.requests, c.denied, c.busiest})
	}
	return rep
}
