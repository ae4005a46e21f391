package replay

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// run is one policy file on its way through the logs.
type run struct {
	replay *Replay
	file   string
	memory *core.Memory
	set    *policy.Set
	sweep  sweep // nil: none
	dry    []string

	result   FileReport
	policies map[string]*PolicyReport
	keys     *tally[keyCount]
	routes   *tally[keyCount]
	clients  *tally[clientCount]
	series   series
}

// clientCount is what is known of one client.
type clientCount struct {
	requests, denied int64
	minute, inMinute int64
	busiest          int64
}

const maxRoutes = 10_000

func newRun(f File, r *Replay) (*run, error) {
	clock := func() time.Time { return r.now }
	memory, err := core.NewMemory(core.MemoryConfig{Clock: clock})
	if err != nil {
		return nil, err
	}
	one := &run{replay: r, file: f.Name, memory: memory, policies: map[string]*PolicyReport{}}
	one.keys = newTally(r.config.MaxKeys, func(c *keyCount) int64 { return c.requests })
	one.routes = newTally(min(maxRoutes, r.config.MaxKeys), func(c *keyCount) int64 { return c.requests })
	one.clients = newTally(r.config.MaxKeys, func(c *clientCount) int64 { return c.requests })
	opts := r.options(func(d core.Decision) {
		if d.DryRun {
			one.dry = append(one.dry, one.exceeded(d)...)
		}
	})
	one.set, err = policy.Parse(f.Name, f.Text, append(opts, policy.WithStore(&countingStore{memory, one.keys}))...)
	if err == nil && r.config.Sweep {
		one.sweep, err = newSweep(f, clock, r.options(func(core.Decision) {}))
	}
	if err != nil {
		return nil, errors.Join(err, one.close())
	}
	for _, p := range one.set.Policies() {
		one.policies[p.Name] = &PolicyReport{Policy: p.Name, DryRun: p.DryRun}
		if p.Wait > 0 && !p.DryRun {
			one.result.Waits = append(one.result.Waits, p.Name)
		}
	}
	return one, nil
}

func (r *run) close() error {
	errs := []error{r.memory.Close()}
	if r.set != nil {
		errs = append(errs, r.set.Close())
	}
	return errors.Join(append(errs, r.sweep.close())...)
}

// decide has a checker decide on a request, which ends at once.
func decide(c core.Checker, r *request) core.Decision {
	d := c.Check(r)
	if d.NeedsOutcome() {
		c.Settle(r, d, core.Outcome{})
	}
	return d
}

// decide has the policies decide on a request.
func (r *run) decide(req *request, now time.Time) {
	r.dry = r.dry[:0]
	d := decide(r.set, req)
	for _, name := range r.dry {
		r.policies[name].DryRunDenied++
	}
	point, route, client := r.series.at(now), r.routes.atText(routeOf(req.entry.Method, req.rawPath)), r.clients.atText(req.client())
	route.requests++
	client.requests++
	if minute := now.Unix() / 60; minute != client.minute {
		client.minute, client.inMinute = minute, 0
	}
	client.inMinute++
	client.busiest = max(client.busiest, client.inMinute)
	if len(r.dry) > 0 {
		r.result.DryRunDenied++
		point.DryRunDenied++
	}
	if d.Allowed {
		r.result.Allowed++
		point.Allowed++
	} else {
		r.result.Denied++
		point.Denied++
		route.denied++
		client.denied++
		if d.Reason == core.ReasonBadRequest {
			r.result.Bad++ // d.Rule is then that of a limit which has not denied it
		} else if p := r.policies[r.set.PolicyOf(d.Rule())]; p != nil {
			p.Denied++
		}
	}
	r.sweep.check(req)
}

func (r *run) report() FileReport {
	rep := r.result
	rep.File = r.file
	for _, p := range r.set.Policies() {
		rep.Policies = append(rep.Policies, *r.policies[p.Name])
	}
	denied := func(c *keyCount) int64 { return c.denied }
	for _, e := range r.keys.top(r.replay.config.Top, denied) {
		k := KeyReport{Requests: e.value.requests, Denied: e.value.denied}
		k.Rule, k.Key = splitKey(e.key)
		k.Policy = r.set.PolicyOf(k.Rule)
		rep.Keys = append(rep.Keys, k)
	}
	rep.KeysHeld, rep.KeysMissed = r.replay.config.MaxKeys, r.keys.dropped
	for _, e := range r.routes.top(r.replay.config.Top, denied) {
		rep.Routes = append(rep.Routes, RouteReport{e.key, e.value.requests, e.value.denied})
	}
	rep.Series = Series{r.series.start, r.series.width, slices.Clone(r.series.points)}
	rep.Clients = r.clientReport()
	if r.sweep != nil {
		rep.Sweeps = r.sweep.curves()
	}
	return rep
}

// splitKey takes a counted key apart. The core ends a key with a zero byte.
func splitKey(s string) (rule, key string) {
	rule, s, _ = strings.Cut(s, separator)
	return rule, strings.TrimSuffix(s, "\x00")
}

// exceeded returns the policies whose limits deny a request.
func (r *run) exceeded(d core.Decision) []string {
	var names []string
	for s := range d.Limits() {
		if name := r.set.PolicyOf(s.Rule); s.Denied && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (r *run) clientReport() ClientReport {
	most := r.replay.config.HonestPerMinute
	rep := ClientReport{Clients: len(r.clients.entries), HonestPerMinute: most, Missed: r.clients.dropped}
	for _, e := range r.clients.entries {
		if e.value.denied == 0 {
			continue
		}
		rep.Denied++
		if e.value.busiest <= most {
			rep.Honest++
			rep.HonestDenied += e.value.denied
		}
	}
	honest := func(c *clientCount) int64 {
		if c.busiest > most {
			return 0
		}
		return c.denied
	}
	for _, e := range r.clients.top(r.replay.config.Top, honest) {
		rep.Examples = append(rep.Examples, ClientExample{e.key, e.value.requests, e.value.denied, e.value.busiest})
	}
	return rep
}

// options are those of every Set: the log knows the users, and nobody knows the tiers.
func (r *Replay) options(dryRunDenied func(core.Decision)) []policy.Option {
	return []policy.Option{
		policy.Log(slog.New(slog.DiscardHandler)), // what a log shows of requests is not what a server would see
		policy.WithoutWaiting(),
		policy.WithUser(func(core.Request) string { return r.request.entry.User }),
		policy.WithTier(func(core.Request) (string, error) {
			r.request.lacks("tier")
			return "", nil
		}),
		policy.OnDisallowed(func(_ core.Request, d core.Decision, denial core.Denial) core.Denial {
			dryRunDenied(d)
			return denial
		}),
	}
}
