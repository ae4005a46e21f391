package replay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/policy"
)

// A log of a year is told by wider points.
func TestALongLog(t *testing.T) {
	var log strings.Builder
	for day := range 365 {
		log.WriteString(line(day*24*3600, "10.0.0.1", "GET /"))
	}
	s := run(t, config("policies: [{name: a, key: ip, limits: 1/h}]"), log.String()).Series
	var total int64
	for _, p := range s.Points {
		total += p.Allowed + p.Denied
	}
	if len(s.Points) > 1440 || total != 365 || s.Width < time.Hour {
		t.Errorf("%d points of %v with %d requests", len(s.Points), s.Width, total)
	}
}

// At most twenty lines that cannot be read are shown, each with its first 200 bytes.
func TestSamples(t *testing.T) {
	for wrong, want := range map[int]int{0: 0, 20: 20, 25: 20} {
		if r := run(t, config("policies: [{name: a, limits: 9/h}]"), line(0, "a", "GET /")+strings.Repeat(strings.Repeat("x", 300)+"\n", wrong)); len(r.Samples) != want || r.Malformed != int64(wrong) || want > 0 && len(r.Samples[0].Text) != 200 {
			t.Errorf("%d wrong lines: %d samples, want %d of 200 bytes", wrong, len(r.Samples), want)
		}
	}
}

func TestWhatEndsAReplay(t *testing.T) {
	if _, err := replay.New(config("policies: [{name: a, limits: 1/x}]")); len(policy.Errors(err)) != 1 {
		t.Errorf("a broken file: %v", err)
	}
	r, err := replay.New(config("policies: [{name: a, limits: 1/h}]"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	whole := strings.Repeat(line(0, "a", "GET /"), 5)
	if err := r.Run(t.Context(), "log", strings.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is gone")
	nonsense := io.MultiReader(strings.NewReader("nonsense\n"), iotest.ErrReader(broken))
	if err := r.Run(t.Context(), "log", nonsense); !errors.Is(err, broken) {
		t.Errorf("a log that cannot be read to its end: %v", err)
	}
	if err := r.Run(t.Context(), "log", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a log that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx, "log", strings.NewReader(strings.Repeat(line(0, "a", "GET /"), 10_000))); !errors.Is(err, context.Canceled) {
		t.Errorf("a replay that is interrupted: %v", err)
	}
}

// A log of which no line can be read is an error, wherever it is among the logs and
// whatever is wrong with the others.
func TestALogWithoutALine(t *testing.T) {
	r, err := replay.New(config("policies: [{name: a, limits: 9/h}]"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	for _, c := range []struct{ text, want string }{
		{line(0, "a", "GET /") + "wrong\nwrong\n", "<nil>"}, {"", "<nil>"}, {"\n\n", "<nil>"}, {line(0, "a", "GET /"), "<nil>"},
		{"wrong\nwrong\nwrong\n", `log: none of its lines (3) is a line of an access log: line 1, "wrong", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
		{"wrong\n", `log: none of its lines (1) is a line of an access log: line 1, "wrong", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
		{"wrong\n" + line(0, "a", "GET /"), "<nil>"},
		{"\n" + strings.Repeat("é", 101) + "\nwrong\n", `log: none of its lines (2) is a line of an access log: line 2, "` + strings.Repeat("é", 100) + `", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
		{strings.Repeat("é", 100) + "\n", `log: none of its lines (1) is a line of an access log: line 1, "` + strings.Repeat("é", 100) + `", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
		{`{"when":1}`, `log: none of its lines (1) is a line of an access log: line 1, "{\"when\":1}", has no time that can be read (want ` + accesslog.Formats + "; --fields names the fields of other JSON)"},
	} {
		if err := r.Run(t.Context(), "log", strings.NewReader(c.text)); fmt.Sprint(err) != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// models are second implementations of the algorithms, of 4 in 8 seconds, for one
// key: how many of the requests at these seconds are denied.
var models = map[string]func(times []int) int64{
	"4/8s fixed_window": func(times []int) (denied int64) {
		start, n := -100, 0
		for _, t := range times {
			if t >= start+8 {
				start, n = t, 0
			}
			if n++; n > 4 {
				denied++
			}
		}
		return denied
	},
	"4/8s sliding_log": func(times []int) (denied int64) {
		var log []int
		for _, t := range times {
			log = slices.DeleteFunc(log, func(e int) bool { return t-e >= 8 })
			if len(log) < 4 {
				log = append(log, t)
			} else {
				denied++
			}
		}
		return denied
	},
	"4/8s token_bucket": func(times []int) (denied int64) {
		due := -100 // a hit is worth two seconds
		for _, t := range times {
			if due = max(due, t); due+2-2*4 <= t {
				due += 2
			} else {
				denied++
			}
		}
		return denied
	},
	"4/8s": func(times []int) (denied int64) {
		start, now, before := -100, 0, 0
		for _, t := range times {
			if t-start >= 16 {
				start, now, before = t, 0, 0
			} else if t-start >= 8 {
				start, now, before = start+8, 0, now
			}
			if (now*8+before*(8-(t-start)))/8+1 <= 4 {
				now++
			} else {
				denied++
			}
		}
		return denied
	},
	"4/8s bucketed_window precision=2s": func(times []int) (denied int64) {
		buckets := map[int]int{}
		for _, t := range times {
			sum, k := 0, t/2
			for i := k - 4; i <= k; i++ {
				sum += buckets[i]
			}
			if sum < 4 {
				buckets[k]++
			} else {
				denied++
			}
		}
		return denied
	},
}

func TestTheFiguresAreThoseOfASecondImplementation(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // it is a test's
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is a test's
	for limits, model := range models {
		for range 5 {
			var log strings.Builder
			var times []int
			second := 0
			for i := range 600 {
				if second += []int{0, 0, 1, 1, 2, 7}[r.IntN(6)]; i == 400 {
					second += 40_000 // a night without requests
				}
				times = append(times, second)
				log.WriteString(line(second, "192.0.2.1", "GET /"))
			}
			if f := run(t, config("policies: [{name: a, limits: "+limits+"}]"), log.String()); f.Denied != model(times) || f.Allowed+f.Denied != 600 {
				t.Errorf("%s: %d allowed, %d denied, want %d denied", limits, f.Allowed, f.Denied, model(times))
			}
		}
	}
}

// Close ends what New has begun, also for a sweep, and so does New if it fails.
func TestNothingGoesOnAfterAReplay(t *testing.T) {
	for text, fails := range map[string]bool{"policies: [{name: a, limits: 5/m}]": false, "policies: []": true} {
		c := config(text)
		c.Sweep = true
		r, err := replay.New(c)
		if err == nil {
			err = r.Close()
		}
		if (err != nil) != fails {
			t.Errorf("%s: %v", text, err)
		}
		goleak.VerifyNone(t)
	}
}

// A request takes no time: of each ten that come at once, no limit of requests in flight
// denies one, in a sweep neither.
func TestRequestsOfALogEndAtOnce(t *testing.T) {
	c := config("policies: [{name: a, key: ip, in-flight: 1, limits: 8/m}]")
	c.Sweep = true
	f := run(t, c, strings.Repeat(line(0, "192.0.2.1", "GET /"), 20))
	if f.Allowed != 8 || f.Denied != 12 {
		t.Errorf("%d allowed and %d denied, want 8 and 12", f.Allowed, f.Denied)
	}
	for _, p := range f.Sweeps[0].Points {
		if want := max(0, 20-max(1, int64(8*p.Factor+0.5))); p.Denied != want {
			t.Errorf("× %g: %d denied, want %d", p.Factor, p.Denied, want)
		}
	}
}
