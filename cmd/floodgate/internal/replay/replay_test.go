package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// line writes a line of a log, so many seconds after the beginning.
func line(second int, address, request string) string {
	return fmt.Sprintf("%s - - [%s] \"%s HTTP/1.1\" 200 1 \"-\" \"agent\"\n", address, begin.Add(time.Duration(second)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), request)
}

func config(texts ...string) replay.Config {
	c := replay.Config{HonestPerMinute: 5, Top: 10, MaxKeys: 1000}
	for i, text := range texts {
		c.Files = append(c.Files, replay.File{Name: fmt.Sprint("f", i), Text: []byte(text)})
	}
	return c
}

func run(t testing.TB, c replay.Config, logs ...string) *replay.Report {
	r, err := replay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	for i, log := range logs {
		if err := r.Run(context.Background(), replay.Log{Name: fmt.Sprint("log", i), Reader: strings.NewReader(log)}); err != nil {
			t.Fatal(err)
		}
	}
	return r.Report()
}

func TestALogWithKnownAnswers(t *testing.T) {
	var log strings.Builder
	for i := range 10 { // one in a second: of 3 in 6 s 6 pass
		log.WriteString(line(i, "192.0.2.1", "GET /items/"+fmt.Sprint(i)))
	}
	log.WriteString("not a line\n")
	for range 20 { // all at once: 3 pass
		log.WriteString(line(30, "192.0.2.2", "POST /login"))
	}
	log.WriteString(line(25, "192.0.2.3", "GET /late?x=1")) // older than one before it
	log.WriteString(line(90, "192.0.2.1", "GET /items/77"))
	c := config(`
policies:
  - {name: all, key: ip, limits: 3/6s fixed_window}
  - {name: planned, limits: 0/s, dry-run: true, match: {methods: [POST]}, key: 'header["x-api-key"]'}
`, "policies: [{name: other, limits: 100/h}]")
	c.Sweep = true
	r := run(t, c, log.String())
	if r.Lines != 33 || r.Requests != 32 || r.Malformed != 1 || r.Samples[0].Line != 11 || r.Samples[0].Text != "not a line" || r.OutOfOrder != 1 || r.LongestBack != 5*time.Second || !r.WholeSeconds {
		t.Errorf("the log: %+v", r)
	}
	if !r.From.Equal(begin) || !r.To.Equal(begin.Add(90*time.Second)) || strings.Join(r.Missing, ",") != "header x-api-key" {
		t.Errorf("from %v to %v, missing %v", r.From, r.To, r.Missing)
	}
	f := r.Files[0]
	if f.Allowed != 6+3+1+1 || f.Denied != 4+17 || f.DryRunDenied != 3 || f.Bad != 0 {
		t.Errorf("totals: %d, %d, %d, %d", f.Allowed, f.Denied, f.DryRunDenied, f.Bad)
	}
	if want := (replay.KeyReport{Policy: "all", Rule: "all", Key: "192.0.2.2", Requests: 20, Denied: 17}); f.Keys[0] != want {
		t.Errorf("the first key: %+v", f.Keys[0])
	}
	if want := (replay.KeyReport{Policy: "planned", Rule: "planned", Requests: 3, Denied: 3}); !slices.Contains(f.Keys, want) { // the requests that all allows
		t.Errorf("the keys: %+v", f.Keys)
	}
	if want := (replay.RouteReport{Route: "GET /items/{id}", Requests: 11, Denied: 4}); f.Routes[1] != want || f.Routes[0].Route != "POST /login" {
		t.Errorf("the routes: %+v", f.Routes)
	}
	if len(f.Series.Points) != 2 || f.Series.Points[0].Denied != 21 || f.Series.Points[1].Allowed != 1 || f.Series.Points[0].DryRunDenied != 3 {
		t.Errorf("over time: %+v", f.Series)
	}
	cl := f.Clients
	if cl.Clients != 3 || cl.Denied != 2 || cl.Honest != 0 {
		t.Errorf("the clients: %+v", cl)
	}
	if got := fmt.Sprint(f.Policies); got != "[{all false 21 0} {planned true 0 3}]" {
		t.Errorf("the policies: %s", got)
	}
	if r.Files[1].Denied != 0 || r.Files[1].Allowed != 32 {
		t.Errorf("the other file: %+v", r.Files[1])
	}
	for _, p := range f.Sweeps[0].Points { // all, by itself
		want := map[float64]int64{1: 21, 10: 0, 5: 5, 2: 14}
		if n, known := want[p.Factor]; known && p.Denied != n {
			t.Errorf("× %g: %d denied, want %d", p.Factor, p.Denied, n)
		}
	}
	for i, bar := range f.KeyHistogram {
		if bar.From != 1<<i || bar.To != 2<<i-1 {
			t.Errorf("bar %d is of %d to %d", i, bar.From, bar.To)
		}
	}
	if bars := f.KeyHistogram; bars[0].Keys != 1 || bars[3].Keys != 1 || bars[4].Keys != 1 || bars[4].Denied != 17 {
		t.Errorf("the histogram: %+v", bars)
	}
	// The same with an honest client.
	c.HonestPerMinute = 10
	if cl := run(t, c, log.String()).Files[0].Clients; cl.Honest != 1 || cl.HonestDenied != 4 || cl.Examples[0].Client != "192.0.2.1" || cl.Examples[0].Busiest != 10 || cl.Examples[0].Requests != 11 || cl.Examples[0].Denied != 4 {
		t.Errorf("the clients: %+v", cl)
	}
}

// Fixed windows, by a model.
func TestAnyLogIsDecidedAsTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quota, window := rapid.IntRange(1, 4).Draw(t, "quota"), rapid.IntRange(1, 20).Draw(t, "window")
		var log strings.Builder
		second := 0
		type counter struct{ start, used int }
		counters := map[string]counter{}
		denied := map[string]int64{}
		var all int64
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			second += rapid.SampledFrom([]int{0, 0, 1, 3, 30}).Draw(t, "wait")
			address := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}).Draw(t, "address")
			log.WriteString(line(second, address, "GET /"))
			c, known := counters[address]
			if !known || second >= c.start+window {
				c = counter{start: second}
			}
			if c.used < quota {
				c.used++
			} else {
				denied[address]++
				all++
			}
			counters[address] = c
		}
		r, err := replay.New(config(fmt.Sprintf("policies: [{name: a, key: ip, limits: %d/%ds fixed_window}]", quota, window)))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // its counters are in memory
		if err := r.Run(context.Background(), replay.Log{Name: "log", Reader: strings.NewReader(log.String())}); err != nil {
			t.Fatal(err)
		}
		f := r.Report().Files[0]
		if f.Denied != all {
			t.Fatalf("%d denied, want %d", f.Denied, all)
		}
		for _, k := range f.Keys {
			if k.Denied != denied[k.Key] {
				t.Fatalf("%s: %d denied, want %d", k.Key, k.Denied, denied[k.Key])
			}
		}
	})
}

func TestUsersAndBadRequests(t *testing.T) {
	log := strings.ReplaceAll(line(0, "a", "GET /?id=1")+line(1, "a", "GET /"), "- - [", "- ann [")
	f := run(t, config(`policies: [{name: a, key: user, limits: 1/h, match: {when: 'query["id"] == "1"'}}, {name: b, key: 'query["id"]', missing: reject, limits: 1/h}]`), log).Files[0]
	if f.Allowed != 1 || f.Bad != 1 || f.Denied != 1 {
		t.Errorf("%+v", f)
	}
}

func TestTimesWithFractions(t *testing.T) {
	log := `{"ts":1795182936.2,"ip":"a","method":"GET","path":"/"}` + "\n" + `{"ts":1795182936.4,"ip":"a","method":"GET","path":"/"}` + "\n"
	if r := run(t, config("policies: [{name: a, limits: 1/200ms fixed_window}]"), log); r.WholeSeconds || r.Files[0].Denied != 0 {
		t.Errorf("%+v", r)
	}
}

// Every policy that is for a request counts it once, and one with a burst is
// tried with other bursts too.
func TestSeveralPoliciesCountAndAreSweptOnce(t *testing.T) {
	c := config("policies: [{name: a, limits: 100/h}, {name: b, limits: 10/h token_bucket burst=4}]")
	c.Sweep = true
	f := run(t, c, strings.Repeat(line(0, "a", "GET /"), 10)).Files[0]
	// The last six were denied by b, and charged to neither.
	if len(f.KeyHistogram) != 4 || f.KeyHistogram[3].Keys != 2 || f.KeyHistogram[3].Requests != 20 || f.KeyHistogram[3].Denied != 6 {
		t.Errorf("the keys: %+v", f.KeyHistogram)
	}
	for _, s := range f.Sweeps {
		for _, p := range s.Points {
			want := map[string]map[float64]int64{"a": {1: 0, 0.1: 0}, "b": {1: 6, 0.5: 8, 2: 2}}[s.Policy]
			if n, known := want[p.Factor]; known && p.Denied != n {
				t.Errorf("%s × %g: %d denied, want %d", s.Policy, p.Factor, p.Denied, n)
			}
		}
	}
}

// What is told on the way, and what is held back: the lines that are compared with
// those that follow, and no more samples than are shown.
func TestProgressAndSamples(t *testing.T) {
	for lines, want := range map[int]string{0: "[]", 1: "[1]", 511: "[511]", 512: "[512]", 513: "[512 513]", 1024: "[512 1024]", 1100: "[512 1024 1100]"} {
		var told []int64
		c := config("policies: [{name: a, limits: 9/h}]")
		c.Progress = func(n int64) { told = append(told, n) }
		r := run(t, c, strings.Repeat(line(0, "a", "GET /"), lines))
		if fmt.Sprint(told) != want || r.Lines != int64(lines) || r.Requests != int64(lines) || r.WholeSeconds != (lines > 0) {
			t.Errorf("%d lines: told %v, want %s; %d lines, %d requests, whole seconds: %t", lines, told, want, r.Lines, r.Requests, r.WholeSeconds)
		}
	}
	for wrong, want := range map[int]int{0: 0, 19: 19, 20: 20, 21: 20, 25: 20} {
		if r := run(t, config("policies: [{name: a, limits: 9/h}]"), line(0, "a", "GET /")+strings.Repeat(strings.Repeat("x", 300)+"\n", wrong)); len(r.Samples) != want || r.Malformed != int64(wrong) || want > 0 && len(r.Samples[0].Text) != 200 {
			t.Errorf("%d wrong lines: %d samples, want %d of 200 bytes", wrong, len(r.Samples), want)
		}
	}
}

// The speed over a log of 200 MB or so: lines of the combined format, two
// policies, a hundred thousand addresses.
func BenchmarkReplay(b *testing.B) {
	const lines = 20_000
	var log strings.Builder
	for i := range lines {
		log.WriteString(line(i/50, fmt.Sprintf("10.%d.%d.%d", i%7, i%31, i%251), "GET /items/"+fmt.Sprint(i%1000)))
	}
	for name, sweep := range map[string]bool{"plain": false, "sweep": true} {
		b.Run(name, func(b *testing.B) {
			c := config("policies: [{name: a, key: ip, limits: 100/m}, {name: b, key: ip, limits: 5/s, match: {paths: [/items/*]}}]")
			c.MaxKeys, c.Sweep = 500_000, sweep
			b.SetBytes(int64(log.Len()))
			for b.Loop() {
				run(b, c, log.String())
			}
			b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
