package core_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func TestLimitsText(t *testing.T) {
	for text, want := range map[string][]core.Limit{
		"10/s, 120/m, 240/h":                  {core.PerSecond(10), core.PerMinute(120), core.PerHour(240)},
		"3/6s":                                {{Quota: 3, Window: 6 * time.Second}},
		"100/2h":                              {{Quota: 100, Window: 2 * time.Hour}},
		"5/week":                              {{Quota: 5, Window: 7 * 24 * time.Hour}},
		" 0/day ":                             {{Quota: 0, Window: 24 * time.Hour}},
		"7/01500ms":                           {{Quota: 7, Window: 1500 * time.Millisecond}},
		"10 / s, 3 /H, 4/ H":                  {core.PerSecond(10), core.PerHour(3), core.PerHour(4)},
		"5 PER 15 Minutes":                    {{Quota: 5, Window: 15 * time.Minute}},
		"5 per 15min":                         {{Quota: 5, Window: 15 * time.Minute}},
		"9 per s aligned":                     {{Quota: 9, Window: time.Second, Aligned: true}},
		"1000 per hour token_bucket burst=50": {{Quota: 1000, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 50}},
		"1000/h token_bucket burst=50":        {{Quota: 1000, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 50}},
		"240/h bucketed_window precision=1m name=hourly, 9/s fixed_window aligned": {
			{Name: "hourly", Quota: 240, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
			{Quota: 9, Window: time.Second, Algorithm: core.FixedWindow, Aligned: true},
		},
		"": nil, ",": nil, "10": nil, "10/": nil, "/s": nil, "10/s,": nil, "10/fortnight": nil, "5/mo": nil, "5/2month": nil, "5/ month UTC UTC": nil, "5/y": nil,
		"-1/s": nil, "+1/s": nil, "1.5/s": nil, "1e3/s": nil, "10/0s": nil, "10/-1s": nil, "10/s/m": nil, "10/M": nil, "10/2M": nil, "10 per M": nil, "10/1.5s": nil,
		"10 per": nil, "10 /": nil, "per minute": nil, "10per minute": nil, "10 a minute": nil, "2/2 weeks": nil, "10 per / s": nil, "10 / per s": nil, "10 per per s": nil,
		"10/ 5 s": nil, "0x10/s": nil, "10 / 5 s": nil, "10 per 5": nil, "10 per 0 s": nil, "10 per 5 5 s": nil, "10 / / s": nil, "10/wee\u212a": nil, "10 per -5 s": nil,
		"10/s moving_window": nil, "10/s elastic": nil, "10/s burst=5": nil,
		"10/s token_bucket token_bucket": nil, "10/s name=a name=b": nil, "10/s name=é": nil, "10/s precision=1s": nil,
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

func TestTheDefaultsOfALockout(t *testing.T) {
	for given, want := range map[core.Lockout]core.Lockout{
		{First: time.Minute}:                                {First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour},
		{First: 2 * time.Hour}:                              {First: 2 * time.Hour, Factor: 2, Max: 2 * time.Hour, Decay: 2 * time.Hour},
		{First: time.Minute, Max: time.Hour, Decay: 1e9}:    {First: time.Minute, Factor: 2, Max: time.Hour, Decay: 1e9},
		{First: time.Minute, Factor: 1, Max: 2 * time.Hour}: {First: time.Minute, Factor: 1, Max: time.Minute, Decay: time.Minute},
	} {
		limit := fixed(5, time.Hour)
		limit.Lockout = given
		if got := newLimiter(t, oneRule(limit), nil).Check(&request{}).Limit().Lockout; got != want {
			t.Errorf("%+v: %+v, want %+v", given, got, want)
		}
	}
}

// The error for a number says which numbers are allowed, that for a unit which units.
func TestLimitsTextSaysWhatIsAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"10/0s":                             `window: "0s": must be from 1ms to 366 days`,
		"10/99999999999999999999s":          `window: "99999999999999999999s": must be from 1ms to 366 days`,
		"10/m bucketed_window precision=0s": `precision: "0s": must be from 1ms to 366 days`,
		"99999999999999999999/m":            `quota: "99999999999999999999": must be from 0 to 2147483647`,
		"-99999999999999999999/m":           `quota: "-99999999999999999999": want a whole number`,
		"10/M":                              `item 1: floodgate: configuration: window: "M": may mean minutes or months: write m or month`,
		"5/s, ":                             `item 2: floodgate: configuration: empty`,
		"5/s, 10 a s":                       `item 2: floodgate: configuration: "10 a s": want a quota, a slash and a window, such as 10/s`,
		"5/2months":                         `window: "2months": has no fixed length: write month`,
		"5/s aligned aligned":               `"aligned": aligned is given twice`,
		"5/s name=a/b":                      `Name: "a/b": must be 1 to 64`,
		"5/s name=":                         `name: "": must be 1 to 64`,
		"5/s Elastic":                       `"Elastic": not an algorithm, a time zone, aligned, burst=, precision= or name=`,
		"5/s token_bucket burst=x":          `burst: "x": want a whole number`,
		"5/s token_bucket burst=0":          `burst: 0: must be 1 or more`,
		"5/s burst=99999999999999999999":    `burst: "99999999999999999999": must be from 0 to 2147483647`,
	} {
		if limits, err := core.ParseLimits(text); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, limits, err, want)
		}
	}
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

func TestValidateNamesTheField(t *testing.T) {
	name := strings.Repeat("n", 64)
	bucketed := func(window, precision time.Duration) core.Limit {
		return core.Limit{Quota: 1, Window: window, Algorithm: core.BucketedWindow, Precision: precision}
	}
	burst := func(quota int64, window time.Duration, burst int64) core.Limit {
		return core.Limit{Quota: quota, Window: window, Algorithm: core.TokenBucket, Burst: burst}
	}
	lockout := func(k core.Lockout) core.Limit {
		l := fixed(5, 15*time.Minute)
		l.Lockout = k
		return l
	}
	sliding, aligned := lockout(core.Lockout{First: 30 * time.Second}), lockout(core.Lockout{First: 30 * time.Second})
	sliding.Algorithm, aligned.Aligned = core.SlidingWindow, true
	for _, row := range []struct {
		limit core.Limit
		says  []string // nil if the limit is valid
	}{
		{core.PerMinute(-1), []string{"Quota: -1: must be from 0 to 2147483647 for sliding_window"}},
		{core.PerMinute(0), nil},
		{core.PerMinute(core.MaxQuota), nil},
		{core.PerMinute(core.MaxQuota + 1), []string{"Quota: 2147483648"}},
		{core.Limit{Quota: core.MaxLogQuota, Window: time.Hour, Algorithm: core.SlidingLog}, nil},
		{core.Limit{Quota: core.MaxLogQuota + 1, Window: time.Hour, Algorithm: core.SlidingLog}, []string{"Quota: 10001: must be from 0 to 10000 for sliding_log"}},
		{core.Limit{}, []string{"Window: 0s: must be from 1ms to 366 days"}},
		{core.Limit{Window: -time.Second}, []string{"Window: -1s"}},
		{core.Limit{Window: 60}, []string{"Window: 60ns: must be from 1ms to 366 days: a number without a unit counts nanoseconds"}},
		{core.Limit{Window: core.MinWindow - time.Microsecond}, []string{"Window: 999µs"}},
		{core.Limit{Window: core.MinWindow}, nil},
		{core.Limit{Window: core.MaxWindow}, nil},
		{core.Limit{Window: core.MaxWindow + time.Microsecond}, []string{"Window: 8784h0m0.000001s: must be from 1ms to 366 days"}},
		{core.Limit{Window: time.Second + 1}, []string{"Window: 1.000000001s: must be whole microseconds"}},
		{core.Limit{Window: time.Hour, Algorithm: core.TokenBucket + 1}, []string{"Algorithm: 5: is not one of SlidingWindow, FixedWindow, BucketedWindow, SlidingLog, TokenBucket"}},
		{core.Limit{Window: time.Hour, Burst: 5}, []string{"Burst: 5: only token_bucket has one, not sliding_window"}},
		{burst(1, time.Hour, -1), []string{"Burst: -1: must be from 0 (the Quota) to 2147483647"}},
		{burst(core.MaxQuota, time.Hour, core.MaxQuota), nil},
		{burst(core.MaxQuota, time.Hour, core.MaxQuota+1), []string{"Burst: 2147483648: must be from 0 (the Quota) to 2147483647"}},
		{burst(0, time.Hour, core.MaxQuota), nil},
		{burst(1, 24*time.Hour, 36_500), nil},
		{burst(1, 24*time.Hour, 36_501), []string{"Burst: 36501: at 1 in 24h0m0s the bucket would take more than 100 years to fill"}},
		{core.Limit{Window: time.Hour, Precision: time.Second}, []string{"Precision: 1s: only bucketed_window has one, not sliding_window"}},
		{bucketed(time.Minute, 0), []string{"Precision: 0s: bucketed_window needs the length of a bucket, which must divide the Window (1m0s)"}},
		{bucketed(time.Minute, 7*time.Second), []string{"Precision: 7s: must divide the Window (1m0s)"}},
		{bucketed(time.Hour, time.Hour), nil},
		{bucketed(time.Hour, time.Hour+time.Microsecond), []string{"Precision: 1h0m0.000001s: must be from 1ms to the Window (1h0m0s)"}},
		{bucketed(core.MinWindow, core.MinWindow/2), []string{"Precision: 500µs: must be from 1ms to the Window (1ms)"}},
		{bucketed(4096*core.MinWindow, core.MinWindow), nil},
		{bucketed(4097*core.MinWindow, core.MinWindow), []string{"Precision: 1ms: makes 4097 buckets of the Window (4.097s), and 4096 is the most"}},
		{bucketed(2001*time.Microsecond, 1_000_500), []string{"Precision: 1.0005ms: must be whole microseconds"}},
		{core.Limit{Window: time.Hour, Algorithm: core.SlidingLog, Aligned: true}, []string{"Aligned: true: only fixed_window and sliding_window have windows to align, not sliding_log"}},
		{core.Limit{Window: time.Hour, Name: "a b"}, []string{`Name: "a b": must be 1 to 64 of the characters A-Z a-z 0-9 _ . -`}},
		{core.Limit{Window: time.Hour, Name: name}, nil},
		{core.Limit{Window: time.Hour, Name: name + "n"}, []string{"Name"}},
		{core.Limit{Window: time.Hour, Name: "AZaz09_.-"}, nil},
		{core.Limit{Quota: -1}, []string{"Quota", "Window"}}, // all at once
		{sliding, []string{"Lockout: waits of 30s × 2 up to 1h: only fixed_window can have one, not sliding_window"}},
		{aligned, []string{"Aligned: true: a limit with a Lockout begins its windows at the first hit"}},
		{lockout(core.Lockout{Factor: 3}), []string{"Lockout.First: 0s: must be from 1ms"}},
		{lockout(core.Lockout{First: time.Second + 500}), []string{"Lockout.First: 1.0000005s: must be whole microseconds"}},
		{lockout(core.Lockout{First: core.MaxWindow + time.Second}), []string{"Lockout.First: 8784h0m1s: must be from 1ms to 366 days"}},
		{lockout(core.Lockout{First: time.Second, Factor: -1}), []string{"Lockout.Factor: -1: must be from 1 to 1000, or 0 for 2"}},
		{lockout(core.Lockout{First: time.Second, Factor: 1001}), []string{"Lockout.Factor: 1001"}},
		{lockout(core.Lockout{First: 2 * time.Second, Max: time.Second}), []string{"Lockout.Max: 1s: must be from 2s to 366 days"}},
		{lockout(core.Lockout{First: time.Second, Decay: 500 * time.Microsecond}), []string{"Lockout.Decay: 500µs: must be from 1ms"}},
		{lockout(core.Lockout{First: 2 * time.Hour}), nil},
		{lockout(core.Lockout{First: core.MinWindow, Factor: 1000, Max: core.MaxWindow, Decay: core.MinWindow}), nil},
	} {
		err := row.limit.Validate()
		if (err == nil) != (row.says == nil) || err != nil && !errors.Is(err, core.ErrConfig) {
			t.Errorf("%+v: error %v, want %q", row.limit, err, row.says)
		}
		for _, s := range row.says {
			if !strings.Contains(fmt.Sprint(err), s) {
				t.Errorf("error %q does not say %q", err, s)
			}
		}
	}
	if err := burst(1, -time.Second, 1).Validate(); err == nil || strings.Contains(err.Error(), "Burst") {
		t.Errorf("a negative window is no fault of the burst: %v", err)
	}
	if err := (core.Limit{}).Validate(); strings.Contains(err.Error(), "unit") {
		t.Errorf("a window that was left out has no wrong unit: %v", err)
	}
}

// The numbers are part of what files and documents say.
func TestTheNumbersOfConstants(t *testing.T) {
	const day = 86_400_000_000_000 // nanoseconds
	for name, c := range map[string][2]int64{
		"MinWindow": {int64(core.MinWindow), 1_000_000}, "MaxWindow": {int64(core.MaxWindow), 366 * day}, "Month": {int64(core.Month), 31 * day},
		"MaxQuota": {core.MaxQuota, 2_147_483_647}, "MaxLogQuota": {core.MaxLogQuota, 10_000}, "MaxLimits": {core.MaxLimits, 16}, "MaxRules": {core.MaxRules, 10_000},
		"DefaultMaxKeys": {core.DefaultMaxKeys, 1_000_000}, "StatusCanceled": {core.StatusCanceled, 499}, "Never": {int64(core.Never), math.MaxInt64}, "Unlimited": {core.Unlimited, math.MaxInt64},
		"PerDay": {int64(core.PerDay(1).Window), day}, "PerWeek": {int64(core.PerWeek(1).Window), 7 * day}, "PerMonth": {int64(core.PerMonth(1).Window), 31 * day},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %d, want %d", name, c[0], c[1])
		}
	}
}

func TestWorstCaseAndLifetime(t *testing.T) {
	locked := func(k core.Lockout) core.Limit {
		l := fixed(5, 15*time.Minute)
		l.Lockout = k
		return l
	}
	for _, row := range []struct {
		limit     core.Limit
		worstCase int64
		lifetime  time.Duration
	}{
		{core.PerMinute(10), 20, 2 * time.Minute},
		{fixed(10, time.Minute), 20, time.Minute},
		{core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 3}, 13, 18*time.Second + time.Microsecond},
		{core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.SlidingLog}, 10, time.Minute},
		{core.Limit{Quota: 10, Window: time.Minute, Algorithm: core.BucketedWindow, Precision: time.Second}, 10, 61 * time.Second},
		// Waits of 30, 60, 120, 240 and 480 s: the quota five times in 15 minutes, and once before.
		// The longest wait, then a Decay for each of the eight waits before it.
		{locked(core.Lockout{First: 30 * time.Second}), 5 * 6, 9 * time.Hour},
		{locked(core.Lockout{First: 30 * time.Second, Max: time.Hour, Decay: 10 * time.Minute}), 5 * 6, 140 * time.Minute},
		{locked(core.Lockout{First: 30 * time.Second, Factor: 1}), 5 * 31, 15 * time.Minute},
		{locked(core.Lockout{First: time.Hour}), 5 * 2, 2 * time.Hour},
		// More than an int64 holds.
		{core.Limit{Quota: core.MaxQuota, Window: core.MaxWindow, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Millisecond, Factor: 1}}, math.MaxInt64 / core.MaxQuota * core.MaxQuota, core.MaxWindow},
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
