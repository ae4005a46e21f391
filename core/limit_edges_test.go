package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func TestEveryUnitOfAWindow(t *testing.T) {
	for units, want := range map[string]time.Duration{
		"ms millisecond milliseconds": time.Millisecond,
		"s sec second seconds":        time.Second,
		"m min minute minutes":        time.Minute,
		"h hour hours":                time.Hour,
		"d day DAY days":              24 * time.Hour,
		"w week weeks":                7 * 24 * time.Hour,
	} {
		for _, unit := range strings.Fields(units) {
			limits, err := core.ParseLimits("5/3" + unit)
			if err != nil || len(limits) != 1 || limits[0].Window != 3*want {
				t.Errorf("5/3%s: %v, %v, want a window of %v", unit, limits, err, 3*want)
			}
		}
	}
}

// A limit at the end of a range is in it.
func TestTheEndsOfTheRangesOfALimit(t *testing.T) {
	name := strings.Repeat("n", 64)
	for _, row := range []struct {
		limit core.Limit
		wrong string // the field; "" if the limit is valid
	}{
		{core.Limit{Quota: 0, Window: core.MinWindow}, ""},
		{core.Limit{Quota: 1, Window: core.MinWindow - time.Microsecond}, "Window"},
		{core.Limit{Quota: core.MaxQuota, Window: core.MaxWindow}, ""},
		{core.Limit{Quota: core.MaxQuota + 1, Window: core.MaxWindow}, "Quota"},
		{core.Limit{Quota: 1, Window: core.MaxWindow + time.Microsecond}, "Window"},
		{core.Limit{Quota: core.MaxLogQuota, Window: time.Hour, Algorithm: core.SlidingLog}, ""},
		{core.Limit{Quota: 1, Window: time.Hour, Name: name}, ""},
		{core.Limit{Quota: 1, Window: time.Hour, Name: "AZaz09_.-"}, ""},
		{core.Limit{Quota: 1, Window: time.Hour, Name: name + "n"}, "Name"},
		{core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Hour}, ""},
		{core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Hour + time.Microsecond}, "Precision"},
		{core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: core.MinWindow}, "Precision"}, // too many buckets
		{core.Limit{Quota: 1, Window: core.MaxBuckets * core.MinWindow, Algorithm: core.BucketedWindow, Precision: core.MinWindow}, ""},
		{core.Limit{Quota: 1, Window: (core.MaxBuckets + 1) * core.MinWindow, Algorithm: core.BucketedWindow, Precision: core.MinWindow}, "Precision"},
		{core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.TokenBucket}, ""},
		{core.Limit{Quota: core.MaxQuota, Window: time.Hour, Algorithm: core.TokenBucket, Burst: core.MaxQuota}, ""},
		{core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.TokenBucket, Burst: core.MaxQuota + 1}, "Burst"},
		{core.Limit{Quota: 0, Window: time.Hour, Algorithm: core.TokenBucket, Burst: core.MaxQuota}, ""},
		{core.Limit{Quota: 1, Window: core.MaxRefill / 100, Algorithm: core.TokenBucket, Burst: 100}, ""},
		{core.Limit{Quota: 1, Window: core.MaxRefill / 100, Algorithm: core.TokenBucket, Burst: 101}, "Burst"},
	} {
		err := row.limit.Validate()
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%+v: %v, want %q", row.limit, err, row.wrong)
		}
	}
}

// A window that has been left out has no wrong unit.
func TestAWindowOfZeroIsNoMistakeOfAUnit(t *testing.T) {
	err := core.Limit{Quota: 1}.Validate()
	if err == nil || !strings.Contains(err.Error(), "Window") || strings.Contains(err.Error(), "unit") {
		t.Errorf("%v", err)
	}
}

// A hook may answer with every status that HTTP has for an end of a request.
func TestTheStatusOfADenialFromAHook(t *testing.T) {
	status := 0
	l := newLimiter(t, core.Config{
		Rules: []core.Rule{{Key: static("k"), Limits: []core.Limit{core.PerMinute(0)}}},
		Hooks: core.HookFuncs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return core.Denial{Status: status} }},
	}, newClock())
	for given, want := range map[int]int{0: 429, 199: 429, 200: 200, 403: 403, 599: 599, 600: 429, -1: 429} {
		status = given
		if got := l.Deny(&request{}, l.Check(&request{})).Status; got != want {
			t.Errorf("the hook's status %d: %d, want %d", given, got, want)
		}
	}
}

// The ranges are part of what files and documents say: 366 days, 100 years.
func TestTheRangesOfALimit(t *testing.T) {
	const day = 86_400_000_000_000 // nanoseconds
	for name, c := range map[string][2]int64{
		"MinWindow": {int64(core.MinWindow), 1_000_000}, "MaxWindow": {int64(core.MaxWindow), 366 * day}, "MaxRefill": {int64(core.MaxRefill), 36_500 * day}, "Month": {int64(core.Month), 31 * day},
		"MaxQuota": {core.MaxQuota, 2_147_483_647}, "MaxLogQuota": {core.MaxLogQuota, 10_000}, "MaxBuckets": {core.MaxBuckets, 4096},
		"PerDay": {int64(core.PerDay(1).Window), day}, "PerWeek": {int64(core.PerWeek(1).Window), 7 * day}, "PerMonth": {int64(core.PerMonth(1).Window), 31 * day},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %d, want %d", name, c[0], c[1])
		}
	}
}
