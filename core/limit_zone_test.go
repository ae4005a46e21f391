package core_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
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
	for _, l := range []core.Limit{
		core.PerDay(5).In(berlin), core.PerWeek(5).In(time.UTC), core.PerMonth(5), core.PerMonth(5).In(berlin),
		{Quota: 5, Window: core.Month, Algorithm: core.FixedWindow, Zone: time.FixedZone("UTC+2", 7200)},
		core.PerDay(5).In(time.FixedZone("A"+strings.Repeat("a", 63), 0)), core.PerDay(5).In(time.FixedZone("Zz_0+9-/aA", 0)),
	} {
		if err := l.Validate(); err != nil {
			t.Errorf("%v: %v", l, err)
		}
	}
	lockout := core.PerDay(5).In(berlin)
	lockout.Lockout = core.Lockout{First: time.Minute}
	for _, row := range []struct {
		limit core.Limit
		says  string
	}{
		{core.PerHour(5).In(berlin), "Zone: Europe/Berlin: a window of 1h is not a day, a week or a month, and only these have a time zone"},
		{core.PerDay(5).In(nil), `Zone: "": must have a name: write time.UTC, or what time.LoadLocation("Europe/Berlin") returns`},
		{core.PerDay(5).In(time.Local), "Zone: Local: is another zone on another machine"},
		{core.PerDay(5).In(time.FixedZone("a b", 0)), `Zone: "a b": the name must be`},
		{core.PerDay(5).In(time.FixedZone("A"+strings.Repeat("a", 64), 0)), `the name must be`},
		{core.Limit{Quota: 5, Window: 24 * time.Hour, Zone: berlin}, "Zone: Europe/Berlin: only fixed_window has the windows of a calendar, not sliding_window: leave out the algorithm or the zone"},
		{core.Limit{Quota: 5, Window: 24 * time.Hour, Algorithm: core.TokenBucket}.In(berlin), "not token_bucket"},
		{core.Limit{Quota: 5, Window: 24 * time.Hour, Algorithm: core.FixedWindow, Zone: berlin, Aligned: true}, "Aligned: true"},
		{lockout, "a limit with a Lockout begins its windows at the first hit"},
	} {
		if err := row.limit.Validate(); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v: %v, want an error that says %q", row.limit, err, row.says)
		}
	}
	if a, b := core.PerDay(5).In(berlin), core.PerDay(5).In(berlin); a != b {
		t.Errorf("%v is not %v", a, b)
	}
}

// Limits of one rule with other zones, or none, count apart; so do their names differ.
// Two zones of one name are one.
func TestTwoZonesAreTwoCounters(t *testing.T) {
	berlin, again, kathmandu := zoneOf(t, "Europe/Berlin"), zoneOf(t, "Europe/Berlin"), zoneOf(t, "Asia/Kathmandu")
	rule := func(limits ...core.Limit) core.Config {
		return core.Config{Rules: []core.Rule{{Name: "r", Limits: limits}}}
	}
	if _, err := core.New(rule(core.PerDay(5).In(berlin), core.PerDay(7).In(again))); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "counts the same as") {
		t.Errorf("two limits of one zone: %v", err)
	}
	c := newClock()
	c.now = time.Date(2024, 3, 30, 18, 0, 0, 0, time.UTC) // in Kathmandu it is 23:45, in Berlin 19:00
	l := newLimiter(t, rule(core.PerDay(5).In(berlin), core.PerDay(3).In(kathmandu), core.PerDay(9)), c)
	hit := core.Hit{Rule: "r", Key: "k"}
	if d, _ := l.Take(t.Context(), 3, hit); !d.Allowed {
		t.Error(d)
	}
	d, _ := l.Take(t.Context(), 1, hit)
	if d.Allowed || d.RetryAfter != 15*time.Minute || d.Limit().Name != "r-day-fixed_window" {
		t.Errorf("%v, retry after %v", d, d.RetryAfter)
	}
	c.advance(15 * time.Minute)
	if d, _ = l.Take(t.Context(), 2, hit); !d.Allowed || d.Limit().Name != "r-day" || d.ResetAfter != 4*time.Hour+45*time.Minute {
		t.Errorf("%v, %s, reset after %v", d, d.Limit().Name, d.ResetAfter)
	}
	if d, _ = l.Take(t.Context(), 1, hit); d.Allowed || d.RetryAfter != 4*time.Hour+45*time.Minute {
		t.Errorf("%v, retry after %v", d, d.RetryAfter)
	}
}

// A Reconfigure keeps the count of a limit whose zone stays, by its name.
func TestReconfigureKeepsTheCountOfAZone(t *testing.T) {
	rule := func(l core.Limit) core.Config {
		return core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{l}}}}
	}
	c := newClock()
	l := newLimiter(t, rule(core.PerMonth(10).In(zoneOf(t, "Europe/Berlin"))), c)
	hit := core.Hit{Rule: "r", Key: "k"}
	_, _ = l.Take(t.Context(), 4, hit)
	for _, row := range []struct {
		limit core.Limit
		left  int64
	}{
		{core.PerMonth(7).In(zoneOf(t, "Europe/Berlin")), 3}, {core.PerWeek(7).In(zoneOf(t, "Europe/Berlin")), 7}, {core.PerMonth(7).In(zoneOf(t, "Europe/Vienna")), 7},
	} {
		if err := l.Reconfigure(rule(row.limit)); err != nil {
			t.Fatal(err)
		}
		if d, _ := l.Take(t.Context(), 0, hit); d.Remaining != row.left {
			t.Errorf("%v: %d left, want %d", row.limit, d.Remaining, row.left)
		}
	}
}

// plainStart returns the first minute at which the clock of a zone shows a date, or
// a later one.
func plainStart(zone *time.Location, year int, month time.Month, day int) time.Time {
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	reached := func(at time.Time) bool {
		y, m, d := at.In(zone).Date()
		return !time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(date)
	}
	at := date.Add(-20 * time.Hour)
	for !reached(at) {
		at = at.Add(15 * time.Minute) // no midnight of these years lies between
	}
	for at = at.Add(-14 * time.Minute); !reached(at); {
		at = at.Add(time.Minute)
	}
	return at
}

// plainWindow returns the window that a time is in.
func plainWindow(l core.Limit, at time.Time) (start, end time.Time) {
	y, m, d := at.In(l.Zone).Date()
	next := func() { d++ }
	switch l.Window {
	case core.Month:
		d, next = 1, func() { m++ }
	case 7 * 24 * time.Hour:
		d -= int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Weekday()+6) % 7
		next = func() { d += 7 }
	}
	for end = plainStart(l.Zone, y, m, d); !end.After(at); {
		start = end
		next()
		end = plainStart(l.Zone, y, m, d)
	}
	return start, end
}

// A model that knows only which hits are in the window of a time agrees with each
// decision, through changes of the clock, skipped days and leap days.
func TestDecisionsFollowTheCalendar(t *testing.T) {
	near := map[string]time.Time{ // times near which something happens
		"Europe/Berlin": time.Date(2024, 3, 31, 0, 0, 0, 0, time.UTC), "Africa/Cairo": time.Date(2024, 4, 25, 22, 0, 0, 0, time.UTC),
		"America/Sao_Paulo": time.Date(2018, 11, 4, 3, 0, 0, 0, time.UTC), "Pacific/Apia": time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC),
		"Asia/Beirut": time.Date(2024, 3, 30, 22, 0, 0, 0, time.UTC), "Asia/Kathmandu": time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		"Australia/Lord_Howe": time.Date(2024, 10, 5, 15, 30, 0, 0, time.UTC), "America/St_Johns": time.Date(2006, 10, 29, 2, 31, 0, 0, time.UTC),
		"UTC": time.Date(2028, 12, 31, 0, 0, 0, 0, time.UTC), "America/New_York": time.Date(2044, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	names, seed := slices.Sorted(maps.Keys(near)), rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	upTo := func(d time.Duration) time.Duration {
		return time.Duration(r.Int64N(int64(d))).Truncate(time.Microsecond)
	}
	for range 300 {
		name := names[r.IntN(len(names))]
		limit := []core.Limit{core.PerDay(5), core.PerWeek(5), core.PerMonth(5)}[r.IntN(3)].In(zoneOf(t, name))
		c := newClock()
		c.now = near[name].Add(upTo(4*24*time.Hour) - 3*24*time.Hour)
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}}}}, c)
		type hits struct {
			at time.Time
			n  int64
		}
		var charged []hits
		for range 1 + r.IntN(12) {
			start, end := plainWindow(limit, c.now)
			used := int64(0)
			for _, h := range charged {
				if !h.at.Before(start) && h.at.Before(end) {
					used += h.n
				}
			}
			cost := r.Int64N(6)
			d, err := l.Take(t.Context(), cost, core.Hit{Rule: "r", Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			want := used+cost <= 5 || cost == 0
			if want {
				charged, used = append(charged, hits{c.now, cost}), used+cost
			}
			wait := end.Sub(c.now)
			reset, retry := wait, wait
			if used == 0 {
				reset = 0
			}
			if want {
				retry = 0
			}
			if d.Allowed != want || d.Remaining != 5-used || d.ResetAfter != reset || d.RetryAfter != retry {
				t.Fatalf("seed %d, %v at %v: %d of 5 used, cost %d: %v, %d left, reset after %v, retry after %v; the window ends in %v", seed, limit, c.now.In(limit.Zone), used, cost,
					d.Allowed, d.Remaining, d.ResetAfter, d.RetryAfter, wait)
			}
			switch r.IntN(4) {
			case 0: // to the end of the window, or a microsecond before it
				c.advance(wait - time.Duration(r.IntN(2))*time.Microsecond)
			case 1:
				c.advance(upTo(time.Hour))
			case 2:
				c.advance(upTo(40 * 24 * time.Hour))
			}
		}
	}
}
