package core_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

func TestLimitsText(t *testing.T) {
	for text, want := range map[string][]core.Limit{
		"10/s, 120/m, 240/h": {core.PerSecond(10), core.PerMinute(120), core.PerHour(240)},
		"3/6s":               {{Quota: 3, Window: 6 * time.Second}},
		"100/2h":             {{Quota: 100, Window: 2 * time.Hour}},
		"5/week":             {{Quota: 5, Window: 7 * 24 * time.Hour}},
		" 0/day ":            {{Quota: 0, Window: 24 * time.Hour}},
		"7/1500ms":           {{Quota: 7, Window: 1500 * time.Millisecond}},
		"2/2 weeks":          nil,
		"100 per minute":     {core.PerMinute(100)},
		"1 / second":         {core.PerSecond(1)},
		"10/S":               {core.PerSecond(10)},
		"10 / s, 3 /H, 4/ H": {core.PerSecond(10), core.PerHour(3), core.PerHour(4)},
		"5 PER 15 Minutes":   {{Quota: 5, Window: 15 * time.Minute}},
		"5 per 15min":        {{Quota: 5, Window: 15 * time.Minute}},
		"9 per s aligned":    {{Quota: 9, Window: time.Second, Aligned: true}},
		"1000 per hour token_bucket burst=50": {
			{Quota: 1000, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 50},
		},
		"1000/h token_bucket burst=50": {
			{Quota: 1000, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 50},
		},
		"240/h bucketed_window precision=1m name=hourly, 9/s fixed_window aligned": {
			{Name: "hourly", Quota: 240, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
			{Quota: 9, Window: time.Second, Algorithm: core.FixedWindow, Aligned: true},
		},
		"": nil, ",": nil, "10": nil, "10/": nil, "/s": nil, "10/s,": nil, "10/fortnight": nil, "5/mo": nil, "5/2month": nil, "5/ month UTC UTC": nil, "5/y": nil,
		"-1/s": nil, "+1/s": nil, "1.5/s": nil, "1e3/s": nil, "10/0s": nil, "10/-1s": nil, "10/s/m": nil, "10/M": nil, "10/2M": nil, "10 per M": nil, "10/1.5s": nil,
		"10 per": nil, "10 /": nil, "per minute": nil, "10per minute": nil, "10 a minute": nil, "10 per / s": nil, "10 / per s": nil, "10 per per s": nil,
		"10/ 5 s": nil, "10 / 5 s": nil, "10 per 5": nil, "10 per 0 s": nil, "10 per 5 5 s": nil, "10 / / s": nil, "10/wee\u212a": nil, "10 per -5 s": nil,
		"10/s moving_window": nil, "10/s elastic": nil, "10/s burst=5": nil, "10/s token_bucket burst=0": nil, "10/s token_bucket burst=x": nil,
		"10/s token_bucket token_bucket": nil, "10/s name=a name=b": nil, "10/s name=": nil, "10/s name=é": nil, "10/s precision=1s": nil,
		"99999999999/s": nil, "9/99999999999999999999s": nil, "9/367d": nil, "10001/s sliding_log": nil, "１/s": nil,
	} {
		got, err := core.ParseLimits(text)
		switch {
		case want == nil && !errors.Is(err, core.ErrConfig):
			t.Errorf("%q: limits %v, error %v, want an error", text, got, err)
		case want == nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", text)):
			t.Errorf("%q: the error does not tell the text: %v", text, err)
		case want != nil && (err != nil || !reflect.DeepEqual(got, want)):
			t.Errorf("%q: %v, error %v, want %v", text, got, err, want)
		}
	}
}

func FuzzLimits(f *testing.F) {
	for _, s := range []string{"10/s, 120/m", "100 per minute", "1 / second", "10/S", "5 per 15 minutes aligned", "9/day Europe/Berlin", "7 per month", "5/week UTC fixed_window name=w", "1/31d UTC", "1/3s token_bucket burst=4 name=b", "1000/h token_bucket burst=50", "5/week", "240/h bucketed_window precision=1m", "9/s aligned name=x", "3/6 s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limits, err := core.ParseLimits(text)
		if (err == nil) != (len(limits) > 0) {
			t.Fatalf("%q: %v, %v", text, limits, err)
		}
		for _, l := range limits {
			if err := l.Validate(); err != nil {
				t.Errorf("%q gives a limit that is not valid: %v", text, err)
			}
			if again, err := core.ParseLimits(limitText(l)); err != nil || len(again) != 1 || !same(again[0], l) {
				t.Errorf("%q gives %v, its text %q gives %v, %v", text, l, limitText(l), again, err)
			}
			if name := l.Name; !strings.Contains(l.String(), "(") {
				l.Name = ""
				if again, err := core.ParseLimits(l.String()); err != nil || len(again) != 1 || !same(again[0], l) {
					t.Errorf("%q (%s) is described as %q, which gives %v, %v", text, name, l, again, err)
				}
			}
		}
	})
}

// same reports whether two limits are equal, but for the pointers to their zones.
func same(a, b core.Limit) bool {
	if a.Zone != nil && b.Zone != nil && a.Zone.String() == b.Zone.String() {
		a.Zone = b.Zone
	}
	return a == b
}

// limitText writes a limit as ParseLimits reads it.
func limitText(l core.Limit) string {
	text := fmt.Sprintf("%d/%dms %v", l.Quota, l.Window.Milliseconds(), l.Algorithm)
	if l.Zone != nil {
		unit := map[time.Duration]string{24 * time.Hour: "day", 7 * 24 * time.Hour: "week", core.Month: "month"}[l.Window]
		text = fmt.Sprintf("%d/%s %v %v", l.Quota, unit, l.Zone, l.Algorithm)
	}
	if l.Burst > 0 {
		text += fmt.Sprint(" burst=", l.Burst)
	}
	if l.Precision > 0 {
		text += fmt.Sprintf(" precision=%dms", l.Precision.Milliseconds())
	}
	if l.Aligned {
		text += " aligned"
	}
	if l.Name != "" {
		text += " name=" + l.Name
	}
	return text
}

// The letter M is a minute to some programs and a month to others.
func TestAnAmbiguousUnitTellsWhatToWrite(t *testing.T) {
	_, err := core.ParseLimits("10/M")
	if err == nil || !strings.Contains(err.Error(), `window: "M": may mean minutes or months: write m or month`) {
		t.Error(err)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	ok := core.PerMinute(5)
	for _, row := range []struct {
		change func(*core.Limit)
		says   []string
	}{
		{func(l *core.Limit) { l.Quota = -1 }, []string{"Quota", "-1"}},
		{func(l *core.Limit) { l.Quota = 1 << 31 }, []string{"Quota", "2147483648"}},
		{func(l *core.Limit) { l.Quota = 1e18 }, []string{"Quota"}},
		{func(l *core.Limit) { l.Window = 0 }, []string{"Window", "0s"}},
		{func(l *core.Limit) { l.Window = -time.Second }, []string{"Window", "-1s"}},
		{func(l *core.Limit) { l.Window = time.Microsecond }, []string{"Window", "1µs"}},
		{func(l *core.Limit) { l.Window = 60 }, []string{"Window", "60ns", "a number without a unit counts nanoseconds"}},
		{func(l *core.Limit) { l.Window = 367 * 24 * time.Hour }, []string{"Window"}},
		{func(l *core.Limit) { l.Window = time.Second + 1 }, []string{"Window", "microseconds"}},
		{func(l *core.Limit) { l.Algorithm = 99 }, []string{"Algorithm", "99"}},
		{func(l *core.Limit) { l.Burst = 5 }, []string{"Burst", "5"}},
		{func(l *core.Limit) { l.Algorithm, l.Burst = core.TokenBucket, -1 }, []string{"Burst", "-1"}},
		{func(l *core.Limit) {
			l.Algorithm, l.Quota, l.Window, l.Burst = core.TokenBucket, 1, core.MaxWindow, 101
		}, []string{"Burst", "101", "100 years"}},
		{func(l *core.Limit) { l.Precision = time.Second }, []string{"Precision"}},
		{func(l *core.Limit) { l.Algorithm = core.BucketedWindow }, []string{"Precision", "0s", "needs the length of a bucket"}},
		{func(l *core.Limit) { l.Algorithm, l.Precision = core.BucketedWindow, 7*time.Second }, []string{"Precision", "7s", "divide"}},
		{func(l *core.Limit) { l.Algorithm, l.Precision = core.BucketedWindow, time.Hour }, []string{"Precision", "1h"}},
		{func(l *core.Limit) { l.Algorithm, l.Precision = core.BucketedWindow, time.Millisecond }, []string{"60000 buckets"}},
		{func(l *core.Limit) {
			l.Algorithm, l.Window, l.Precision = core.BucketedWindow, 2001*time.Microsecond, 1_000_500*time.Nanosecond
		}, []string{"Precision", "1.0005ms", "whole microseconds"}},
		{func(l *core.Limit) { l.Algorithm, l.Aligned = core.SlidingLog, true }, []string{"Aligned"}},
		{func(l *core.Limit) { l.Algorithm, l.Quota = core.SlidingLog, 10_001 }, []string{"Quota", "10001", "10000"}},
		{func(l *core.Limit) { l.Name = "a b" }, []string{"Name", `"a b"`}},
		{func(l *core.Limit) { l.Quota, l.Window = -1, 0 }, []string{"Quota", "Window"}}, // all at once
	} {
		l := ok
		row.change(&l)
		err := l.Validate()
		if !errors.Is(err, core.ErrConfig) {
			t.Errorf("%+v: error %v", l, err)
			continue
		}
		for _, s := range row.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("error %q does not say %q", err, s)
			}
		}
	}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
}

func TestANegativeWindowIsNoFaultOfTheBurst(t *testing.T) {
	l := core.Limit{Quota: 1, Window: -time.Second, Burst: 1, Algorithm: core.TokenBucket}
	if err := l.Validate(); !errors.Is(err, core.ErrConfig) || strings.Contains(err.Error(), "Burst") {
		t.Error(err)
	}
}

func TestWorstCaseAndLifetime(t *testing.T) {
	for _, row := range []struct {
		limit     core.Limit
		worstCase int64
		lifetime  time.Duration
	}{
		{core.PerMinute(10), 20, 2 * time.Minute},
		{core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.FixedWindow}, 20, time.Minute},
		{core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 3}, 13, 18*time.Second + time.Microsecond},
		{core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.SlidingLog}, 10, time.Minute},
		{core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.BucketedWindow, Precision: time.Second}, 10, 61 * time.Second},
	} {
		if worst, life := row.limit.WorstCase(), row.limit.Lifetime(); worst != row.worstCase || life != row.lifetime {
			t.Errorf("%v: at worst %d, want %d; for %v, want %v", row.limit, worst, row.worstCase, life, row.lifetime)
		}
	}
}

func ExampleParseLimits() {
	limits, err := core.ParseLimits("10/s, 1000/h token_bucket burst=50")
	fmt.Println(limits, err)
	limits, err = core.ParseLimits("100 per minute, 1 / second")
	fmt.Println(limits, err)
	_, err = core.ParseLimits("5/fortnight")
	fmt.Println(err)
	// Output:
	// [10 per 1s 1000 per 1h (token_bucket, burst 50)] <nil>
	// [100 per 1m 1 per 1s] <nil>
	// limits text "5/fortnight", item 1: floodgate: configuration: window: "fortnight": want a unit such as s, m, h, d, w or month, or a whole number and a unit
}

func ExampleLimit() {
	fmt.Println(core.Limit{Quota: 240, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute})
	fmt.Println(core.Limit{Quota: 5, Window: 90 * time.Second, Algorithm: core.FixedWindow, Aligned: true})
	fmt.Println(core.Limit{Quota: 7, Window: 1500 * time.Millisecond})
	// Output:
	// 240 per 1h (bucketed_window, precision 1m)
	// 5 per 90s (fixed_window, aligned)
	// 7 per 1500ms
}

func ExampleLimit_Validate() {
	fmt.Println(core.Limit{Quota: -1, Window: time.Minute}.Validate())
	// Output: floodgate: configuration: Quota: -1: must be from 0 to 2147483647 for sliding_window
}

func ExampleLimit_WorstCase() {
	fmt.Println(core.PerMinute(100).WorstCase())
	fmt.Println(core.Limit{Quota: 100, Window: time.Minute, Algorithm: core.SlidingLog}.WorstCase())
	// Output:
	// 200
	// 100
}

func ExamplePerMinute() {
	fmt.Println(core.Limit{Quota: 3, Window: 6 * time.Second}, core.PerSecond(10), core.PerMinute(120), core.PerHour(240), core.Limit{Quota: 1000, Window: 24 * time.Hour})
	// Output: 3 per 6s 10 per 1s 120 per 1m 240 per 1h 1000 per 1d
}

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
		Hooks: hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return core.Denial{Status: status} }},
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

// The error for a number that is too small or too large says which numbers are allowed.
func TestLimitsTextSaysWhichNumbersAreAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"10/0s":                             `window: "0s": must be from 1ms to 366 days`,
		"10/99999999999999999999s":          `window: "99999999999999999999s": must be from 1ms to 366 days`,
		"10/m bucketed_window precision=0s": `precision: "0s": must be from 1ms to 366 days`,
		"99999999999999999999/m":            `quota: "99999999999999999999": must be from 0 to 2147483647`,
		"099999999999999999999/m":           `quota: "099999999999999999999": must be from 0 to 2147483647`,
		"-99999999999999999999/m":           `quota: "-99999999999999999999": want a whole number`,
	} {
		if limits, err := core.ParseLimits(text); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, limits, err, want)
		}
	}
}
