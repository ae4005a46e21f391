package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // so that every system has the zones

	"github.com/floodgate-go/floodgate/core"
)

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestLimitsTextOfTheCalendar(t *testing.T) {
	berlin, etc := zoneOf(t, "Europe/Berlin"), zoneOf(t, "Etc/GMT+5")
	for text, want := range map[string]core.Limit{
		"10000/month Europe/Berlin":       core.PerMonth(10000).In(berlin),
		"10000 per month Europe/Berlin":   core.PerMonth(10000).In(berlin),
		"10000 per 1 month Europe/Berlin": core.PerMonth(10000).In(berlin),
		"10000/Month":                     core.PerMonth(10000),
		"1/months fixed_window UTC":       core.PerMonth(1),
		"1000/d Europe/Berlin":            core.PerDay(1000).In(berlin),
		"1000/24h Etc/GMT+5":              core.PerDay(1000).In(etc),
		"1000/day":                        core.PerDay(1000),
		"1000/day Zulu":                   core.PerDay(1000).In(zoneOf(t, "Zulu")),
		"1000/day Etc/GMT-10":             core.PerDay(1000).In(zoneOf(t, "Etc/GMT-10")),
		"5/week UTC name=w":               {Name: "w", Quota: 5, Window: 7 * 24 * time.Hour, Algorithm: core.FixedWindow, Zone: time.UTC},
		"5/31d":                           {Quota: 5, Window: core.Month},
	} {
		got, err := core.ParseLimits(text)
		if err != nil || len(got) != 1 || !same(got[0], want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
			continue
		}
		if name := got[0].Name; name == "" {
			if again, err := core.ParseLimits(got[0].String()); err != nil || !same(again[0], want) {
				t.Errorf("%q is described as %v, which gives %v, %v", text, got[0], again, err)
			}
		}
	}
	for text, says := range map[string]string{
		"5/month Europe/Atlantis":          `zone: "Europe/Atlantis": cannot be loaded: write the name of a time zone such as Europe/Berlin or UTC; a system without time zone files needs a program that imports time/tzdata`,
		"5/month Local":                    `"Local": not an algorithm, a time zone, aligned`,
		"5/month europe/berlin":            `zone: "europe/berlin": cannot be loaded`,
		"5/month ../Berlin":                `zone: "../Berlin": cannot be loaded`,
		"5/month UTC UTC":                  "zone is given twice",
		"5/2 months":                       "", // with a slash, a number and its unit are written together
		"5 per 2 months":                   `window: "2months": has no fixed length: write month`,
		"5/month sliding_window":           "Zone: UTC: only fixed_window has the windows of a calendar, not sliding_window",
		"5/day Europe/Berlin token_bucket": "Zone: Europe/Berlin: only fixed_window has the windows of a calendar, not token_bucket",
		"5/month aligned":                  "Aligned: true: the windows of a limit with a Zone are aligned to its calendar",
		"5/h Europe/Berlin":                "Zone: Europe/Berlin: a window of 1h is not a day, a week or a month, and only these have a time zone",
		"5/2d UTC":                         "a window of 2d is not a day",
		"5/31d Europe/Berlin":              `window: "31d": is not a month: write 5/month Europe/Berlin`,
		"5/d =x":                           `"=x"`,
	} {
		if got, err := core.ParseLimits(text); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v, want an error that says %q", text, got, err, says)
		}
	}
}

func TestALimitOfTheCalendarIsChecked(t *testing.T) {
	berlin := zoneOf(t, "Europe/Berlin")
	with := func(change func(l *core.Limit)) core.Limit {
		l := core.PerDay(5).In(berlin)
		change(&l)
		return l
	}
	for _, row := range []struct {
		limit core.Limit
		says  string // "" if it is valid
	}{
		{core.PerDay(5).In(berlin), ""},
		{core.PerWeek(5).In(time.UTC), ""},
		{core.PerMonth(5), ""},
		{core.PerDay(5).In(time.FixedZone("A"+strings.Repeat("a", 63), 0)), ""},
		{core.PerDay(5).In(time.FixedZone("Zz_0+9-/aA", 0)), ""},
		{core.PerHour(5).In(berlin), "Zone: Europe/Berlin: a window of 1h is not a day, a week or a month"},
		{core.PerDay(5).In(nil), `Zone: "": must have a name`},
		{core.PerDay(5).In(time.Local), "Zone: Local: is another zone on another machine"},
		{core.PerDay(5).In(time.FixedZone("Local", 0)), "Zone: Local: is another zone on another machine"},
		{core.PerDay(5).In(time.FixedZone("A b", 0)), `Zone: "A b": the name must be`},
		{core.PerDay(5).In(time.FixedZone("+5", 0)), `Zone: "+5": the name must be`},
		{core.PerDay(5).In(time.FixedZone("a", 0)), `Zone: "a": the name must be`},
		{core.PerDay(5).In(time.FixedZone("A"+strings.Repeat("a", 64), 0)), `the name must be`},
		{with(func(l *core.Limit) { l.Algorithm = core.SlidingWindow }), "Zone: Europe/Berlin: only fixed_window has the windows of a calendar"},
		{core.Limit{Quota: 5, Window: 24 * time.Hour, Algorithm: core.TokenBucket}.In(berlin), "not token_bucket"},
		{with(func(l *core.Limit) { l.Aligned = true }), "Aligned: true"},
		{with(func(l *core.Limit) { l.Lockout.First = time.Minute }), "Zone: Europe/Berlin: a limit with a Lockout"},
	} {
		if err := row.limit.Validate(); (err == nil) != (row.says == "") || err != nil && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%v: %v, want an error that says %q", row.limit, err, row.says)
		}
	}
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = zoneOf(t, "Europe/Vienna") // as if TZ were set
	if err := core.PerDay(5).In(time.Local).Validate(); err == nil || !strings.Contains(err.Error(), "Zone: Local") {
		t.Errorf("time.Local of another name: %v", err)
	}
}

// Aligned windows end at multiples of the window, others a window after the first hit.
func TestAlignedWindows(t *testing.T) {
	limit := fixed(5, time.Minute)
	for _, limit.Aligned = range []bool{false, true} {
		c := &clock{time.Date(2026, 3, 1, 12, 0, 45, 0, time.UTC)}
		want := time.Minute
		if limit.Aligned {
			want = 15 * time.Second
		}
		if d := newLimiter(t, oneRule(limit), c).Check(&request{}); d.ResetAfter != want {
			t.Errorf("%v: reset after %v, want %v", limit, d.ResetAfter, want)
		}
	}
}

// Limits of one rule with other zones, or none, count apart; so do their names differ.
// Two zones of one name are one.
func TestTwoZonesAreTwoCounters(t *testing.T) {
	berlin, again, kathmandu := zoneOf(t, "Europe/Berlin"), zoneOf(t, "Europe/Berlin"), zoneOf(t, "Asia/Kathmandu")
	if _, err := core.New(oneRule(core.PerDay(5).In(berlin), core.PerDay(7).In(again))); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "counts the same as") {
		t.Errorf("two limits of one zone: %v", err)
	}
	c := newClock()
	c.now = time.Date(2024, 3, 30, 18, 0, 0, 0, time.UTC) // in Kathmandu it is 23:45, in Berlin 19:00
	l := newLimiter(t, oneRule(core.PerDay(5).In(berlin), core.PerDay(3).In(kathmandu), core.PerDay(9)), c)
	for _, step := range []struct {
		cost  int64
		limit string
		retry time.Duration
		reset time.Duration
	}{
		{3, "r-day-fixed_window", 0, 15 * time.Minute},
		{1, "r-day-fixed_window", 15 * time.Minute, 15 * time.Minute},
		{2, "r-day", 0, 4*time.Hour + 45*time.Minute},
		{1, "r-day", 4*time.Hour + 45*time.Minute, 4*time.Hour + 45*time.Minute},
	} {
		d, err := l.Take(t.Context(), step.cost, core.Hit{Rule: "r", Key: "k"})
		if err != nil || d.Limit().Name != step.limit || d.RetryAfter != step.retry || d.ResetAfter != step.reset {
			t.Errorf("%v, %v, retry after %v, reset after %v", d, err, d.RetryAfter, d.ResetAfter)
		}
		c.advance(min(step.retry, 15*time.Minute))
	}
}

// A Reconfigure keeps the count of a limit whose zone stays, by its name.
func TestReconfigureKeepsTheCountOfAZone(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerMonth(10).In(zoneOf(t, "Europe/Berlin"))), newClock())
	hit := core.Hit{Rule: "r", Key: "k"}
	_, _ = l.Take(t.Context(), 4, hit)
	for _, row := range []struct {
		limit core.Limit
		left  int64
	}{
		{core.PerMonth(7).In(zoneOf(t, "Europe/Berlin")), 3}, {core.PerWeek(7).In(zoneOf(t, "Europe/Berlin")), 7}, {core.PerMonth(7).In(zoneOf(t, "Europe/Vienna")), 7},
	} {
		if err := l.Reconfigure(oneRule(row.limit)); err != nil {
			t.Fatal(err)
		}
		if d, _ := l.Take(t.Context(), 0, hit); d.Remaining != row.left {
			t.Errorf("%v: %d left, want %d", row.limit, d.Remaining, row.left)
		}
	}
}
