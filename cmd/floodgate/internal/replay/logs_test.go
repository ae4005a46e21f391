package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/policy"
)

// Of many keys only so many are held; those that were denied most are among
// them.
func TestMemoryIsBounded(t *testing.T) {
	var log strings.Builder
	for i := range 5000 {
		log.WriteString(line(i/100, fmt.Sprintf("10.1.%d.%d", i/250, i%250), "GET /"))
		if i%10 == 0 {
			log.WriteString(line(i/100, "10.0.0.1", "GET /"))
		}
	}
	c := config("policies: [{name: a, key: ip, limits: 1/h}]")
	c.MaxKeys = 100
	f := run(t, c, log.String()).Files[0]
	if len(f.Keys) == 0 || f.Keys[0].Key != "10.0.0.1" || f.Keys[0].Denied < 499-f.KeysMissed || f.Keys[0].Denied > 499 || f.KeysMissed == 0 || f.Denied != 499 {
		t.Errorf("keys %+v, missed %d, denied %d", f.Keys, f.KeysMissed, f.Denied)
	}
	// A log of a year is told by wider points.
	log.Reset()
	for day := range 365 {
		log.WriteString(line(day*24*3600, "10.0.0.1", "GET /"))
	}
	s := run(t, c, log.String()).Files[0].Series
	var total int64
	for _, p := range s.Points {
		total += p.Allowed + p.Denied
	}
	if len(s.Points) > 4096 || total != 365 || s.Width < time.Hour {
		t.Errorf("%d points of %v with %d requests", len(s.Points), s.Width, total)
	}
}

func TestWhatEndsAReplay(t *testing.T) {
	if _, err := replay.New(config("policies: []", "policies: [{name: a, limits: 1/x}]")); len(policy.Errors(err)) != 2 {
		t.Errorf("two broken files: %v", err)
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
	var half bytes.Buffer
	z := gzip.NewWriter(&half)
	if err := errors.Join(func() error { _, err := z.Write([]byte(line(0, "a", "GET /") + line(1, "a", "GET /"))); return err }(), z.Close()); err != nil {
		t.Fatal(err)
	}
	half.Truncate(half.Len() - 3)
	if err := r.Run(t.Context(), "half.gz", &half); fmt.Sprint(err) != "half.gz: ends in the middle: it is truncated or still being written (lines read: 2)" {
		t.Errorf("half of a log: %v", err)
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
		{"\n" + strings.Repeat("é", 101) + "\nwrong\n", `log: none of its lines (2) is a line of an access log: line 2, "` + strings.Repeat("é", 100) + `...", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
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

// The figures are those of a second implementation, with a line whose time is
// wrong and without.
func TestTheFiguresAreThoseOfASecondImplementation(t *testing.T) {
	seed := rand.Uint64() //nolint:gosec // it is a test's
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is a test's
	wrong := map[string]int{"none": 0, "ten years ahead": 10 * 365 * 86400, "an hour ahead": 3600, "fifty years behind": -50 * 365 * 86400}
	for limits, model := range models {
		for name, off := range wrong {
			for _, place := range []int{0, 51, 300, 598, 599} {
				var log strings.Builder
				var times []int
				second := 0
				for i := range 600 {
					if second += []int{0, 0, 1, 1, 2, 7}[r.IntN(6)]; i == 400 {
						second += 40_000 // a night without requests
					}
					if i == place && off != 0 {
						log.WriteString(line(second+off, "192.0.2.1", "GET /"))
						if off == 3600 && place == 599 {
							times = append(times, second+off) // at the end it may be right
						}
					}
					times = append(times, second)
					log.WriteString(line(second, "192.0.2.1", "GET /"))
				}
				if off == 3600 && place == 599 {
					continue
				}
				rep := run(t, config("policies: [{name: a, limits: "+limits+"}]"), log.String())
				outliers := int64(0)
				if off != 0 {
					outliers = 1
				}
				if f := rep.Files[0]; f.Denied != model(times) || f.Allowed+f.Denied != 600 || rep.Outliers != outliers {
					t.Errorf("%s, %s in line %d: %d allowed, %d denied, %d left out, want %d denied", limits, name, place+1, f.Allowed, f.Denied, rep.Outliers, model(times))
				}
			}
		}
	}
}

func TestALineThatIsLeftOutIsShown(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		if i == 50 {
			log.WriteString(line(10*365*86400, "192.0.2.1", "GET /wrong"))
		}
		log.WriteString(line(i, "192.0.2.1", "GET /"))
	}
	c := config("policies: [{name: a, limits: 1/h}]")
	if r := run(t, c, log.String()); r.Outliers != 1 || len(r.Samples) != 1 || r.Samples[0].Line != 51 || r.Samples[0].Text != "GET /wrong" || r.Requests != 100 || r.To.Year() != 2026 {
		t.Errorf("%+v", r)
	}
}

// Two lines whose times are wrong do not confirm each other.
func TestTwoWrongTimesThatAgreeAreLeftOut(t *testing.T) {
	const years = 10 * 365 * 86400
	var log strings.Builder
	for i := range 200 {
		if i == 50 || i == 60 || i == 61 {
			log.WriteString(line(years+i, "192.0.2.1", "GET /wrong"))
		}
		log.WriteString(line(i, "192.0.2.1", "GET /"))
	}
	if r := run(t, config("policies: [{name: a, limits: 9/h}]"), log.String()); r.Outliers != 3 || r.Requests != 200 || !r.To.Equal(begin.Add(199*time.Second)) {
		t.Errorf("%d left out and %d requests until %v, want 3 and 200", r.Outliers, r.Requests, r.To)
	}
}

// The first line of a log is compared with the last lines of the log before it.
func TestTheFirstLineOfTheSecondLog(t *testing.T) {
	lines := func(from int) string {
		var log strings.Builder
		for i := range 100 {
			log.WriteString(line(from+i, "192.0.2.1", "GET /"))
		}
		return log.String()
	}
	wrong := line(-2*86400, "192.0.2.1", "GET /")
	if r := run(t, config("policies: [{name: a, limits: 9/h}]"), lines(0), wrong+lines(100)); r.Outliers != 1 || r.Requests != 200 {
		t.Errorf("%d left out and %d requests, want 1 and 200", r.Outliers, r.Requests)
	}
}

// slowly is a reader that takes a second for each part.
type slowly struct {
	parts   []string
	reading bool
}

func (s *slowly) Read(p []byte) (int, error) {
	s.reading = true
	time.Sleep(time.Second)
	s.reading = false
	n := copy(p, s.parts[0])
	if s.parts[0] = s.parts[0][n:]; s.parts[0] == "" && len(s.parts) > 1 {
		s.parts = s.parts[1:]
	}
	return n, nil
}

// A replay that ends early no longer reads the log: its caller closes the file.
func TestNobodyReadsALogAfterTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := replay.New(config("policies: [{name: a, limits: 9/h}]"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // its counters are in memory
		log := &slowly{}
		for range 10 {
			log.parts = append(log.parts, strings.Repeat(line(0, "a", "GET /"), 3000))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if err := r.Run(ctx, "log", log); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("says %v", err)
		}
		synctest.Wait()
		if log.reading {
			t.Error("the log is still being read")
		}
	})
}

// Close ends what New has begun, for all files and their sweeps, and so does New if it fails.
func TestNothingGoesOnAfterAReplay(t *testing.T) {
	c := config("policies: [{name: a, limits: 5/m}]", "policies: [{name: a, limits: 6/m}]")
	c.Sweep = true
	run(t, c, line(0, "a", "GET /"))
	goleak.VerifyNone(t)
	c.Files = append(c.Files, replay.File{Name: "broken", Text: []byte("policies: []")})
	if _, err := replay.New(c); err == nil {
		t.Error("a broken file is taken")
	}
	goleak.VerifyNone(t)
}

// A request takes no time: of each ten that come at once, no limit of requests in flight
// denies one, in a sweep neither.
func TestRequestsOfALogEndAtOnce(t *testing.T) {
	c := config("policies: [{name: a, key: ip, in-flight: 1, limits: 8/m}]")
	c.Sweep = true
	f := run(t, c, strings.Repeat(line(0, "192.0.2.1", "GET /"), 20)).Files[0]
	if f.Allowed != 8 || f.Denied != 12 {
		t.Errorf("%d allowed and %d denied, want 8 and 12", f.Allowed, f.Denied)
	}
	for _, p := range f.Sweeps[0].Points {
		if want := max(0, 20-max(1, int64(8*p.Factor+0.5))); p.Denied != want {
			t.Errorf("× %g: %d denied, want %d", p.Factor, p.Denied, want)
		}
	}
}
