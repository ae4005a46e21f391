package storetest

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

//go:embed testdata/operations/*.json.gz
var recordedOperations embed.FS

// operationsFolder names the environment variable for another folder of
// operations.
const operationsFolder = "FLOODGATE_OPERATIONS"

// operations is a sequence of operations and their results, from a plain model
// of the arithmetic that keeps every hit and finds waits by bisection.
type operations struct {
	Name   string          `json:"name"`
	Source string          `json:"source"`
	Limits []operatedLimit `json:"limits"`
	Steps  []operation     `json:"steps"`
}

// operatedLimit is a limit whose times are microseconds.
type operatedLimit struct {
	Algorithm   string `json:"algorithm"`
	Quota       int64  `json:"quota"`
	WindowUS    int64  `json:"window_us"`
	Burst       int64  `json:"burst"`
	PrecisionUS int64  `json:"precision_us"`
	Aligned     bool   `json:"aligned"`
	Calendar    string `json:"calendar"` // day, week or month, in place of WindowUS
	Zone        string `json:"zone"`
}

// operation is one step: take, peek, charge, reset, or refund of an earlier take.
type operation struct {
	TimeUS  int64              `json:"t_us"`
	Op      string             `json:"op"`
	Keys    []string           `json:"keys"`
	Cost    int64              `json:"cost"`
	Quotas  []int64            `json:"quotas"`
	Of      int                `json:"of"`
	Allowed bool               `json:"allowed"`
	Results [][]operatedResult `json:"results"`
}

type operatedResult struct {
	Allowed      bool  `json:"allowed"`
	Remaining    int64 `json:"remaining"`
	ResetAfterUS int64 `json:"reset_after_us"`
	RetryAfterUS int64 `json:"retry_after_us"` // -1: never
}

// Operations replays sequences of takes, with quotas of their own too, peeks, charges, refunds and
// resets, with all their results: those in the folder that the environment variable
// FLOODGATE_OPERATIONS names (files *.json and *.json.gz), or else those that the package holds. A
// file named in_flight is left out: those operations are not of a store. A store may reject windows
// of the calendar that it cannot keep, with an error that wraps [core.ErrConfig].
func Operations(t *testing.T, newStore Factory) {
	var folder fs.FS = recordedOperations
	dir := "testdata/operations"
	if name := os.Getenv(operationsFolder); name != "" {
		folder, dir = os.DirFS(name), "."
	}
	entries, err := fs.ReadDir(folder, dir)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".gz"), ".json")
		if name == e.Name() || name == "in_flight" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ran++
			replayOperations(t, folder, path.Join(dir, e.Name()), newStore)
		})
	}
	if ran == 0 {
		t.Errorf("no operations in %q", dir)
	}
}

func replayOperations(t *testing.T, folder fs.FS, name string, newStore Factory) {
	var all []operations
	if err := readGzipped(folder, name, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("the file has none")
	}
	clock := NewClock(time.UnixMilli(0))
	store := newStore(t, clock.Now)
	refused := 0
	for _, o := range all {
		if !o.replay(t, store, clock) {
			refused++
		}
	}
	if refused > 0 {
		t.Logf("%d of %d are of limits that the store refuses", refused, len(all))
	}
	if refused == len(all) {
		t.Skip("the store refuses these limits")
	}
}

// replay returns false if the store has refused a limit of the calendar, with an error of its configuration.
func (o operations) replay(t *testing.T, store core.Store, clock *Clock) (counted bool) {
	t.Helper()
	var limits []core.Limit
	for _, l := range o.Limits {
		limit, err := l.limit()
		if err != nil {
			t.Errorf("%s: %v", o.Name, err)
			return true
		}
		limits = append(limits, limit)
	}
	rules := []core.StoreRule{{Name: "r", Limits: limits}}
	bound, err := store.Open(uniqueName(), rules)
	if errors.Is(err, core.ErrConfig) && slices.ContainsFunc(limits, func(l core.Limit) bool { return l.Zone != nil }) {
		return false
	}
	if err != nil {
		t.Errorf("%s: Open(%v): %v", o.Name, rules, err)
		return true
	}
	c := &counter{t, bound, rules, store.Guarantees().Ops}
	taken := make([]*core.Batch, len(o.Steps))
	for i, step := range o.Steps {
		clock.Set(time.UnixMicro(step.TimeUS))
		var items []core.Item
		for _, k := range step.Keys {
			item := c.item(0, k, step.Cost)
			item.Quotas = step.Quotas
			items = append(items, item)
		}
		diff := ""
		switch step.Op {
		case "take", "peek":
			taken[i] = c.batch(step.Op == "peek", items...)
			diff = step.compare(taken[i])
		case "charge":
			diff = step.compare(c.charge(items...))
		case "reset":
			c.reset(items...)
		case "refund":
			if step.Of < 0 || step.Of >= i || taken[step.Of] == nil {
				t.Errorf("%s, step %d: refunds step %d", o.Name, i, step.Of)
				return true
			}
			of := *taken[step.Of]
			of.Items = slices.Clone(of.Items)
			for j := range of.Items {
				of.Items[j].Cost = step.Cost
			}
			c.refund(&of)
		default:
			diff = fmt.Sprintf("unknown operation %q", step.Op)
		}
		if diff != "" {
			t.Errorf("%s (%v), step %d, %s at %d, cost %d, keys %q: %s", o.Name, limits, i, step.Op, step.TimeUS, step.Cost, step.Keys, diff)
			return true // the steps behind it would only repeat it
		}
	}
	return true
}

func (l operatedLimit) limit() (core.Limit, error) {
	limit, err := vectorLimit{Algorithm: l.Algorithm, Quota: 1, WindowMS: 1000}.limit()
	if limit.Algorithm.String() != l.Algorithm {
		return limit, err
	}
	micros := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	limit.Quota, limit.Burst, limit.Aligned = l.Quota, l.Burst, l.Aligned
	limit.Window, limit.Precision = micros(l.WindowUS), micros(l.PrecisionUS)
	if l.Calendar != "" {
		calendars := map[string]core.Limit{"day": core.PerDay(l.Quota), "week": core.PerWeek(l.Quota), "month": core.PerMonth(l.Quota)}
		zone, err := time.LoadLocation(l.Zone)
		if err != nil {
			return limit, err
		}
		limit = calendars[l.Calendar].In(zone)
		if l.Algorithm != limit.Algorithm.String() {
			return limit, fmt.Errorf("%s %s of the algorithm %s", l.Calendar, l.Zone, l.Algorithm)
		}
	}
	return limit, limit.Validate()
}

func (o operation) compare(b *core.Batch) string {
	if b.Allowed != (o.Allowed || o.Op == "charge") {
		return fmt.Sprintf("allowed %v, want %v", b.Allowed, o.Allowed)
	}
	if len(o.Results) != len(b.Items) {
		return fmt.Sprintf("%d items, want %d", len(b.Items), len(o.Results))
	}
	for i, item := range b.Items {
		for j, got := range item.Results {
			r := o.Results[i][j]
			want := core.Result{
				Allowed:    r.Allowed,
				Remaining:  r.Remaining,
				ResetAfter: time.Duration(r.ResetAfterUS) * time.Microsecond,
				RetryAfter: time.Duration(r.RetryAfterUS) * time.Microsecond,
			}
			if r.RetryAfterUS < 0 {
				want.RetryAfter = core.Never
			}
			want.MoreAfter = got.MoreAfter // is not recorded
			if got != want {
				return fmt.Sprintf("key %q, limit %d: %+v, want %+v", item.Key, j, got, want)
			}
		}
	}
	return ""
}
