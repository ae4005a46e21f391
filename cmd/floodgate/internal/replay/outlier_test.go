package replay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

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
	c.StopAtOutlier = true
	one, err := replay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close() //nolint:errcheck // its counters are in memory
	err = one.Run(context.Background(), replay.Log{Name: "log", Reader: strings.NewReader(log.String())})
	if want := "log: line 51: its time, "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("says %v, want %s", err, want)
	}
	err = one.Run(context.Background(), replay.Log{Name: "log", Reader: strings.NewReader(strings.Repeat("nonsense\n", 7))})
	if want := `log: none of its lines (7) is a line of an access log: line 1, "nonsense", is neither`; err == nil || !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("says %v, want %s", err, want)
	}
}
