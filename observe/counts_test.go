package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
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
	l := core.Must(core.New(c))
	for i := range 22 {
		_, _ = l.Take(t.Context(), 1, core.Hit{Rule: "a", Key: "k"})
		if i == 9 {
			c.DryRun = true
			c.Rules[0].Limits[0].Quota = 15
			if err := l.Reconfigure(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, _ = l.Take(t.Context(), 1, core.Hit{Rule: "none"})
	l.Allow(t.Context())
	got := fmt.Sprintf("%+v", counts.Read())
	want := "[{Name:l Limits:[{Rule:a Limit:a-1h Allowed:15 Denied:0 DryRun:7 Near:2} {Rule:a Limit:a-2h Allowed:0 Denied:0 DryRun:0 Near:0}] " +
		"Skipped:0 NoRule:1 BadRequests:0 Failed:1 Canceled:0 Denied:0 Degraded:0 Store:[] Queues:[] Events:[]}]"
	if got != want {
		t.Errorf("counts\n%s, want\n%s", got, want)
	}
}

// The reasons that are not a limit's.
func TestCountsOfALimiter(t *testing.T) {
	counts := observe.NewCounts()
	f := counts.Observe("l", []core.Rule{rule("a", 9)})
	for i, o := range []core.Observation{
		{Rule: -1, Reason: core.ReasonSkipped, Allowed: true},
		{Rule: -1, Reason: core.ReasonNoRule, Allowed: true},
		{Rule: 0, Reason: core.ReasonBadRequest},
		{Rule: -1, Reason: core.ReasonFailed, Degraded: true},
		{Rule: -1, Reason: core.ReasonOverLimit},
	} {
		for range i + 1 {
			f.Decided(t.Context(), o)
		}
	}
	got := counts.Read()[0]
	if got.Skipped != 1 || got.NoRule != 2 || got.BadRequests != 3 || got.Failed != 4 || got.Denied != 5 || got.Degraded != 4 || got.Limits[0] != (observe.LimitCounts{Rule: "a", Limit: ""}) {
		t.Errorf("%+v", got)
	}
}

func TestCountsOfAStore(t *testing.T) {
	counts := observe.NewCounts()
	f := counts.Observe("l", nil)
	for range 2 {
		f.Stored(t.Context(), "take", time.Millisecond, nil)
	}
	f.Stored(t.Context(), "take", time.Millisecond+1, errors.New("no"))
	f.Stored(t.Context(), "take", 0, nil)
	f.Stored(t.Context(), "take", time.Hour, nil)
	f.Stored(t.Context(), "grant", 1, nil)
	got := counts.Read()[0].Store
	want := []observe.StoreCounts{
		{Operation: "take", Errors: 1, Durations: observe.Durations{Took: time.Hour + 3*time.Millisecond + 1, Buckets: []uint64{1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1}}},
		{Operation: "grant", Durations: observe.Durations{Took: 1, Buckets: []uint64{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}},
	}
	if !reflect.DeepEqual(got, want) || len(observe.Bounds()) != 11 || observe.Bounds()[2] != time.Millisecond {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// However many events a checker makes up, there are 17 numbers.
func TestCountsOfEvents(t *testing.T) {
	counts := observe.NewCounts()
	f := counts.Observe("l", nil)
	for i := range 100 {
		f.Reported(t.Context(), fmt.Sprint(i))
	}
	f.Reported(t.Context(), "3")
	got := counts.Read()[0].Events
	if len(got) != 17 || got[3] != (observe.EventCount{Event: "3", Count: 2}) || got[16] != (observe.EventCount{Event: "other", Count: 84}) {
		t.Errorf("%+v", got)
	}
}

// Exporters refuse names that are not UTF-8, and Prometheus's ends the process.
func TestAnEventThatIsNotUTF8(t *testing.T) {
	counts := observe.NewCounts()
	f := counts.Observe("l", nil)
	f.Reported(t.Context(), "bad \xff event")
	f.Reported(t.Context(), "bad \xfe event")
	if got := counts.Read()[0].Events; len(got) != 1 || got[0] != (observe.EventCount{Event: "bad \ufffd event", Count: 2}) {
		t.Errorf("%+q", got)
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

// told writes down what it is told, and may panic then.
type told struct {
	name   string
	all    *[]string
	keys   bool
	panics bool
	none   bool
}

func (o told) Observe(string, []core.Rule) core.ObserverFuncs {
	say := func(text string) {
		*o.all = append(*o.all, o.name+" "+text)
		if o.panics {
			panic(o.name)
		}
	}
	if o.none {
		return core.ObserverFuncs{}
	}
	return core.ObserverFuncs{
		Keys:     o.keys,
		Decided:  func(_ context.Context, seen core.Observation) { say("decided " + seen.Key + seen.Extra) },
		Stored:   func(_ context.Context, operation string, _ time.Duration, _ error) { say(operation) },
		Queued:   func(_ context.Context, rule int, change int64) { say(fmt.Sprint("queued ", rule, change)) },
		Reported: func(_ context.Context, event string) { say(event) },
	}
}

func TestJoin(t *testing.T) {
	for _, keys := range []bool{false, true} {
		var all []string
		j := observe.Join(nil, told{name: "a", all: &all}, told{none: true}, told{name: "b", all: &all, panics: true}, told{name: "c", all: &all, keys: keys})
		f := j.Observe("l", nil)
		if v := reflect.ValueOf(f); f.Keys != keys || v.NumField() != 5 {
			t.Errorf("Keys %v, and %d fields: Join must join all of them", f.Keys, v.NumField())
		}
		o := core.Observation{}
		if keys {
			o.Key, o.Extra = "k", "e"
		}
		for _, call := range []func(){
			func() { f.Decided(t.Context(), o) }, func() { f.Stored(t.Context(), "take", 0, nil) }, func() { f.Reported(t.Context(), "event") },
			func() { f.Queued(t.Context(), 3, -1) },
		} {
			func() {
				defer func() {
					if recover() != "b" {
						t.Error("the panic is lost")
					}
				}()
				call()
			}()
		}
		want := "a decided , b decided , c decided " + o.Key + o.Extra + ", a take, b take, c take, a event, b event, c event, a queued 3 -1, b queued 3 -1, c queued 3 -1"
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	if f := observe.Join(nil).Observe("l", nil); f.Decided != nil || f.Stored != nil || f.Reported != nil || f.Queued != nil {
		t.Error("nobody is told by somebody")
	}
}

// No two numbers have one name: Prometheus would refuse them all.
func TestNamesAreCountedOnce(t *testing.T) {
	counts := observe.NewCounts()
	f := counts.Observe("l", nil)
	for i := range 15 {
		f.Reported(t.Context(), fmt.Sprint(i))
	}
	for _, event := range []string{"other", "one more", "and another"} {
		f.Reported(t.Context(), event)
	}
	l := counts.Read()[0]
	if n := len(l.Events); n != 16 || l.Events[15] != (observe.EventCount{Event: "other", Count: 3}) {
		t.Errorf("%+v", l.Events)
	}
}
