package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/racetest"
	"github.com/floodgate-go/floodgate/observe"
)

func rule(name string, quotas ...int64) core.Rule {
	r := core.Rule{Name: name}
	for i, q := range quotas {
		r.Limits = append(r.Limits, core.Limit{Quota: q, Window: time.Duration(i+1) * time.Hour})
	}
	return r
}

// quiet is a log that nobody reads.
var quiet = slog.New(slog.DiscardHandler)

func TestCounts(t *testing.T) {
	counts := observe.NewCounts()
	c := core.Config{Name: "l", Log: quiet, Observer: counts, Rules: []core.Rule{rule("a", 20, 21)}}
	c.Rules[0].Limits[0].Algorithm, c.Rules[0].Limits[0].Burst = core.TokenBucket, 20
	l := core.Must(core.New(c))
	_, _ = l.Take(t.Context(), 18, core.Hit{Rule: "a", Key: "other"}) // a tenth is left
	for i := range 22 {
		_, _ = l.Take(t.Context(), 1, core.Hit{Rule: "a", Key: "k"})
		if i == 9 {
			c.DryRun = true
			c.Rules[0].Limits[0].Burst = 15
			if err := l.Reconfigure(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, _ = l.Take(t.Context(), 1, core.Hit{Rule: "none"})
	l.Allow(t.Context())
	got := fmt.Sprintf("%+v", counts.Read())
	want := "[{Name:l Limits:[{Rule:a Limit:a-1h Allowed:16 Denied:0 DryRun:7 Near:3} {Rule:a Limit:a-2h Allowed:0 Denied:0 DryRun:0 Near:0}] " +
		"Skipped:0 NoRule:1 BadRequests:0 Failed:1 Canceled:0 Denied:0 Degraded:0 Store:[] Queues:[] Events:[]}]"
	if got != want {
		t.Errorf("counts\n%s, want\n%s", got, want)
	}
	// Only the first limit has a result of a dry run.
	if n := len(slices.Collect(counts.Read()[0].Results())); n != 11 {
		t.Errorf("%d results, want 11", n)
	}
}

// The reasons that are not a limit's, and the first request over a limit of a dry run.
func TestCountsOfALimiter(t *testing.T) {
	counts := observe.NewCounts()
	f := counts.Observe("l", []core.Rule{rule("a", 9), rule("b", 9)}) // their limits have the same name
	for i, row := range []struct {
		d    core.Decision
		rule int
	}{
		{core.Decision{Reason: core.ReasonSkipped, Allowed: true}, -1},
		{core.Decision{Reason: core.ReasonNoRule, Allowed: true}, -1},
		{core.Decision{Reason: core.ReasonBadRequest}, 0},
		{core.Decision{Reason: core.ReasonFailed, Degraded: true}, -1},
		{core.Decision{Reason: core.ReasonOverLimit}, -1},
		{core.Decision{Reason: core.ReasonOverLimit, Allowed: true, DryRun: true}, 1},
		{core.Decision{Reason: core.ReasonCanceled}, -1},
	} {
		for range 7 - i {
			f.Decided(t.Context(), row.d, row.rule, 0)
		}
	}
	got := counts.Read()[0]
	results := slices.Collect(got.Results())
	if want := "[{a  allowed 0} {a  denied 0} {b  allowed 0} {b  denied 0} {b  dry_run 2} {  skipped 7} {  no_rule 6} {  bad_request 5} {  failed 4} {  canceled 1} {  denied 3}] 4"; fmt.Sprint(results, got.Degraded) != want {
		t.Errorf("%v, %d degraded, want %s", results, got.Degraded, want)
	}
	for _, last := range results { // a loop may end early
		for r := range got.Results() {
			if r == last {
				break
			}
		}
	}
	f = counts.Observe("l", []core.Rule{{Name: "a", MaxWait: time.Second, Limits: []core.Limit{{}}}})
	if q := counts.Read()[0].Queues; len(q) != 1 || q[0].Rule != "a" { // before the first request waits
		t.Errorf("the queues: %+v", q)
	}
	f.Queued(t.Context(), 0, 1)
	for _, row := range []struct {
		d    core.Decision
		rule int
	}{{core.Decision{Allowed: true}, 0}, {core.Decision{Reason: core.ReasonOverLimit}, 0}, {core.Decision{Reason: core.ReasonCanceled}, 0}, {core.Decision{Reason: core.ReasonFailed}, -1}} {
		row.d.Waited = time.Second
		f.Decided(t.Context(), row.d, row.rule, 0)
	}
	var waits []string
	for _, q := range counts.Read()[0].Queues {
		for _, w := range q.Waits {
			waits = append(waits, fmt.Sprint(q.Rule, " ", q.Waiting, " ", w.Result, " ", w.Took))
		}
	}
	if want := []string{"a 1 allowed 1s", "a 1 denied 2s", " 0 failed 1s"}; !slices.Equal(waits, want) {
		t.Errorf("the waits: %q, want %q", waits, want)
	}
}

func TestCountsOfAStore(t *testing.T) {
	counts := observe.NewCounts()
	f := counts.Observe("l", nil)
	for range 2 {
		f.Stored(t.Context(), "take", time.Millisecond, nil)
	}
	f.Stored(t.Context(), "take", time.Millisecond+1, errors.New("no"))
	clear(observe.Bounds()) // what a caller does with them is its own affair
	clear(observe.RequestBounds())
	f.Stored(t.Context(), "take", 0, nil)
	f.Stored(t.Context(), "take", time.Hour, nil)
	f.Stored(t.Context(), "grant", 1, nil)
	got := counts.Read()[0].Store
	want := []observe.StoreCounts{
		{Operation: "take", Errors: 1, Durations: observe.Durations{Took: time.Hour + 3*time.Millisecond + 1, Buckets: []uint64{1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1}}},
		{Operation: "grant", Durations: observe.Durations{Took: 1, Buckets: []uint64{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	bounds := fmt.Sprint(observe.Bounds(), observe.RequestBounds())
	if want := "[250µs 500µs 1ms 2.5ms 5ms 10ms 25ms 50ms 100ms 250ms 1s] [5ms 10ms 25ms 50ms 75ms 100ms 250ms 500ms 750ms 1s 2.5s 5s 7.5s 10s 30s 1m0s]"; bounds != want {
		t.Errorf("bounds %s, want %s", bounds, want)
	}
}

// However many events a checker makes up, there are 17 numbers. No two have one name, and each
// is UTF-8: Prometheus would refuse them all.
func TestCountsOfEvents(t *testing.T) {
	for other, want := range map[string]string{"bad \xff event": "[{bad \ufffd event 1} {0 1} {14 1} {other 86}]", "other": "[{other 87} {0 1} {14 1}]"} {
		counts := observe.NewCounts()
		f := counts.Observe("l", nil)
		f.Reported(t.Context(), other)
		for i := range 100 {
			f.Reported(t.Context(), fmt.Sprint(i))
		}
		f.Reported(t.Context(), "more")
		all := counts.Read()[0].Events
		if got := fmt.Sprint(slices.Concat(all[:2], all[15:])); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Nothing is lost if many goroutines count, for limiters of one name and of others.
func TestCountsConcurrently(t *testing.T) {
	counts := observe.NewCounts()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			l := core.Must(core.New(core.Config{Name: fmt.Sprint("l", i%2), Observer: counts, Rules: []core.Rule{rule("a", 1_000_000)}}))
			for range 1000 {
				l.Allow(t.Context(), core.Hit{Rule: "a", Key: "k"})
				l.Report(t.Context(), "event")
			}
			counts.Read()
		})
	}
	wg.Wait()
	for _, l := range counts.Read() {
		if l.Limits[0].Allowed != 4000 || l.Events[0].Count != 4000 || len(l.Limits) != 1 {
			t.Errorf("%+v", l)
		}
	}
}

func TestCountsAllocateNothing(t *testing.T) {
	l := core.Must(core.New(core.Config{Observer: observe.NewCounts(), Rules: []core.Rule{rule("a", 1_000_000)}}))
	hit := core.Hit{Rule: "a", Key: "k"}
	if n := testing.AllocsPerRun(1000, func() { l.Allow(context.Background(), hit) }); n != 0 && !racetest.Enabled {
		t.Errorf("%v allocations", n)
	}
}

// told writes down what it is told.
type told struct {
	name string
	all  *[]string
	none bool
}

func (o told) Observe(limiter string, _ []core.Rule) core.ObserverFuncs {
	if o.none {
		return core.ObserverFuncs{}
	}
	say := func(text string) { *o.all = append(*o.all, o.name+limiter+" "+text) }
	return core.ObserverFuncs{
		Decided: func(_ context.Context, d core.Decision, rule, limit int) {
			say(fmt.Sprint("decided ", d.Cost, rule, limit))
		},
		Stored: func(_ context.Context, operation string, took time.Duration, err error) {
			say(fmt.Sprint(operation, took, err))
		},
		Queued:   func(_ context.Context, rule int, change int64) { say(fmt.Sprint("queued ", rule, change)) },
		Reported: func(_ context.Context, event string) { say(event) },
	}
}

// What a program changes in the observers that it has joined is its own.
func TestJoin(t *testing.T) {
	var all []string
	mine := []core.Observer{nil, told{name: "a", all: &all}, told{none: true}, told{name: "b", all: &all}}
	j := observe.Join(mine...)
	mine[1] = nil
	f := j.Observe("1", nil)
	if n := reflect.TypeOf(f).NumField(); n != 4 {
		t.Errorf("%d fields: Join must join all of them", n)
	}
	f.Decided(t.Context(), core.Decision{Cost: 7}, 2, 1)
	f.Stored(t.Context(), "take ", 2, context.Canceled)
	f.Reported(t.Context(), "event")
	f.Queued(t.Context(), 3, -1)
	want := "a1 decided 7 2 1, b1 decided 7 2 1, a1 take 2ns context canceled, b1 take 2ns context canceled, a1 event, b1 event, a1 queued 3 -1, b1 queued 3 -1"
	if got := strings.Join(all, ", "); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if f := observe.Join(nil, told{none: true}).Observe("l", nil); f.Decided != nil || f.Stored != nil || f.Reported != nil || f.Queued != nil {
		t.Error("nobody is told by somebody")
	}
}
