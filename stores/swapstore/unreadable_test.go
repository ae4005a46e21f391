package swapstore_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// denying is a rule that a value that cannot be read denies.
func denying(name string, limits ...core.Limit) core.StoreRule {
	return core.StoreRule{Name: name, Limits: limits, DenyUnreadable: true}
}

// A value that somebody else has written counts as none.
func TestForeignStoredValuesAreReplaced(t *testing.T) {
	for _, foreign := range []string{"", "abc", "5 ", "\x01", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x02rest"} {
		w := newWorld(t, quiet, core.StoreRule{Name: "a", Limits: []core.Limit{core.PerHour(3), {Quota: 3, Window: time.Hour, Algorithm: core.SlidingLog}}})
		w.put(stored("a"), foreign)
		for i := range 4 {
			if b := w.do(core.OpTake, 1); b.Allowed != (i < 3) {
				t.Errorf("value %q, take %d: allowed %v", foreign, i+1, b.Allowed)
			}
		}
	}
}

// If the rule demands it, a value that cannot be read denies its key for the shortest window;
// the value of a newer version always does.
func TestForeignStoredValuesDenyTheirKey(t *testing.T) {
	day, hour := core.Limit{Quota: 50, Window: 24 * time.Hour}, core.PerHour(3)
	for what, c := range map[string]struct {
		value  string
		deny   bool
		limits []core.Limit
		kept   bool
	}{
		"the rule's demand":   {"abc", true, []core.Limit{day, hour}, false},
		"another order":       {"abc", true, []core.Limit{hour, day}, false},
		"a newer version":     {"\x07new", false, []core.Limit{day, hour}, true},
		"a newer one, denied": {"\x07new", true, []core.Limit{day, hour}, true},
	} {
		t.Run(what, func(t *testing.T) {
			var log strings.Builder
			w := newWorld(t, slog.New(slog.NewTextHandler(&log, nil)), core.StoreRule{Name: "a", Limits: c.limits, DenyUnreadable: c.deny})
			if !w.do(core.OpPeek, 1).Allowed || log.Len() > 0 {
				t.Errorf("without a value, it is denied or logged: %s", &log)
			}
			w.put(stored("a"), c.value)
			for range 3 {
				b := w.do(core.OpTake, 1)
				if r := b.Items[0].Results[0]; b.Allowed || r.Allowed || r.RetryAfter > time.Hour || r.RetryAfter < 50*time.Minute || r.Remaining != 0 {
					t.Errorf("allowed %v, %+v", b.Allowed, r)
				}
				if err := storetest.Do(t.Context(), w.counters, core.OpRefund, b); err != nil {
					t.Fatal(err)
				}
				w.clock.advance(time.Minute)
			}
			if got := string(w.values[stored("a")].Value); (got == c.value) != c.kept {
				t.Errorf("stored %q", got)
			}
			if got := log.String(); !strings.Contains(got, "cannot be read") || !strings.Contains(got, "limiter=l name=fg1:l:a:") || !strings.Contains(got, "action=deny") {
				t.Errorf("logged %q", got)
			}
			if !c.kept { // a clock that is set back locks nobody out by the mark
				mark := w.values[stored("a")]
				back := *w.clock
				w.clock.advance(-3*time.Minute - time.Hour)
				if !w.do(core.OpTake, 1).Allowed {
					t.Error("denied when the clock was set back by a window")
				}
				*w.clock = back
				w.values[stored("a")] = mark
			}
			w.clock.advance(57*time.Minute - time.Microsecond)
			if w.do(core.OpTake, 1).Allowed {
				t.Error("allowed before an hour has passed")
			}
			w.clock.advance(time.Microsecond)
			if w.do(core.OpTake, 1).Allowed == c.kept {
				t.Errorf("allowed after an hour: %v", !c.kept)
			}
		})
	}
}

// A value that cannot be read stays as it is: after a peek without cost, a refund and a grant;
// that of a newer version also after all that would replace it.
func TestWhatLeavesAValueThatCannotBeReadAsItIs(t *testing.T) {
	text := `limiter "l": ` + stored("a") + ": the stored value has the format of a later version, which this one does not replace"
	for _, op := range []core.Op{core.OpPeek, core.OpRefund, core.OpGrant, core.OpTake, core.OpCharge, core.OpBlock} {
		for value, newer := range map[string]bool{"abc": false, "\x07new": true} {
			w := newWorld(t, quiet, denying("a", core.PerHour(3)))
			w.put(stored("a"), value)
			cost := int64(1)
			if op == core.OpPeek {
				cost = 0
			}
			b := w.batch(cost)
			err := storetest.Do(t.Context(), w.counters, op, b)
			if r := b.Items[0].Results[0]; op == core.OpPeek && (!b.Allowed || !r.Allowed || r.Remaining != 0 || r.RetryAfter != 0) {
				t.Errorf("a peek of %q: %+v", value, b)
			}
			if fails := newer && op&(core.OpGrant|core.OpCharge|core.OpBlock) != 0; (err != nil) != fails || fails && (!errors.Is(err, core.ErrNotCharged) || err.Error() != text) {
				t.Errorf("%v, %q: error %v, want one: %v", op, value, err, fails)
			}
			replaces := !newer && op&(core.OpTake|core.OpCharge|core.OpBlock) != 0
			if got := string(w.values[stored("a")].Value); (got != value) != replaces {
				t.Errorf("%v, %q: it is now %q", op, value, got)
			}
		}
	}
	w := newWorld(t, quiet, denying("a", core.PerHour(3)))
	w.put(stored("a"), "abc")
	w.at(func(step int) error { return map[int]error{2: errFault}[step] })
	if err := w.try(core.OpTake, 1); !errors.Is(err, errFault) || !errors.Is(err, core.ErrNotCharged) {
		t.Errorf("the mark cannot be stored: %v", err)
	}
}

// A line a minute is logged, which says what is done. A clock that is set back does not silence
// the log, and no message silences another.
func TestReportsAreLoggedOnceAMinute(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, nil, hourly("a"))
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	w.put(stored("a"), "abc")
	want := `level=WARN msg="floodgate: a stored value cannot be read" limiter=l name=` + stored("a") + " action=replace\n"
	for i, step := range []struct {
		pass time.Duration
		want bool
	}{
		{0, true}, {0, false}, {time.Microsecond, false}, {time.Minute - 2*time.Microsecond, false},
		{time.Microsecond, true}, {0, false}, {-time.Minute, true}, {1, false},
	} {
		w.clock.advance(step.pass)
		log.Reset()
		w.do(core.OpPeek, 1)
		if _, got, _ := strings.Cut(log.String(), " "); got != map[bool]string{true: want}[step.want] {
			t.Errorf("report %d: logged %q, want a line: %v", i, got, step.want)
		}
	}
	delete(w.values, stored("a"))
	w.do(core.OpTake, 1)
	w.clock.advance(-3 * time.Hour)
	w.do(core.OpPeek, 1)
	want = "ahead: while clocks differ so much, limits do not hold\" limiter=l name=" + stored("a") + " advice=\"set the clocks of all instances\"\n"
	if last := w.swaps[len(w.swaps)-1]; !strings.HasSuffix(log.String(), want) || last.ttl > 2*time.Hour {
		t.Errorf("logged %q, and kept for %v", &log, last.ttl)
	}
}
