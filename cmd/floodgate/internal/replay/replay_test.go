package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2026, 11, 20, 12, 0, 18, 0, time.UTC)

// line writes a line of a log, so many seconds after the beginning.
func line(second int, address, request string) string {
	return fmt.Sprintf("%s - - [%s] \"%s HTTP/1.1\" 200 1 \"-\" \"agent\"\n", address, begin.Add(time.Duration(second)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), request)
}

func config(text string) replay.Config {
	return replay.Config{Name: "f", Text: []byte(text), HonestPerMinute: 5}
}

func run(t testing.TB, c replay.Config, logs ...string) *replay.Report {
	r := core.Must(replay.New(c))
	defer r.Close() //nolint:errcheck // its counters are in memory
	for i, log := range logs {
		if err := r.Run(context.Background(), fmt.Sprint("log", i), strings.NewReader(log)); err != nil {
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
	log.WriteString(line(35, "192.0.2.3", "GET /late")) // counts in the minute in which it is decided
	c := config(`
policies:
  - {name: all, key: ip, limits: 3/6s fixed_window}
  - {name: planned, limits: 0/s, dry-run: true, match: {methods: [POST]}, key: 'header["x-api-key"]'}
`)
	c.Sweep = true
	want := core.Must(os.ReadFile("testdata/known.json"))
	if got, err := json.MarshalIndent(run(t, c, log.String()), "", "  "); err != nil || string(got)+"\n" != string(want) {
		t.Errorf("%v, reports\n%s\nwant\n%s", err, got, want)
	}
}

func TestUsersAndRoutes(t *testing.T) {
	log := strings.ReplaceAll(line(0, "a", "GET /?id=1")+line(1, "a", "OPTIONS /"), "- - [", "- ann [")
	log += strings.ReplaceAll(log, "ann", "bob")
	if f := run(t, config("policies: [{name: a, key: user, limits: 1/h}]"), log); f.Allowed != 2 || f.Denied != 2 || f.Keys[0].Key != "ann" || len(f.Missing) > 0 {
		t.Errorf("two users: %+v", f)
	}
	routed := `{"ts":1795182936,"ip":"a","method":"GET","path":"/items/5","route":"/items/{id}"}` + "\n"
	if f := run(t, config("policies: [{name: a, key: route, limits: 0/h}]"), routed); len(f.Keys) != 1 || f.Keys[0].Key != "/items/{id}" {
		t.Errorf("a route: %+v", f.Keys)
	}
	log += line(2, "a", "GET /")
	if f := run(t, config("policies: [{name: a, key: user, missing: skip, limits: 1/h}]"), log); f.Allowed != 3 || !slices.Equal(f.Missing, []string{"the user of some requests"}) {
		t.Errorf("nobody: %+v", f)
	}
}

// Every policy that is for a request counts it once. Bursts and the quotas of keys are multiplied too; unlimited stays.
// No quota exceeds that of its algorithm.
func TestSeveralPoliciesCountAndAreSweptOnce(t *testing.T) {
	c := config("policies: [{name: a, limits: 20000/h}, {name: b, limits: 10/h token_bucket burst=4}, {name: c, limits: 0/h, dry-run: true}, {name: d, key: ip, limits: 99/h, quotas: {192.0.2.1: 4/h}}, {name: e, key: ip, limits: 1/h, quotas: {192.0.2.1: unlimited}}, {name: f, key: ip, limits: 5000/h sliding_log, quotas: {192.0.2.1: 4000/h}}]")
	c.Sweep = true
	f := run(t, c, strings.Repeat(line(0, "192.0.2.1", "GET /"), 10))
	// The last six were denied by b, and charged to neither.
	for _, s := range f.Sweeps {
		for _, p := range s.Points {
			want := map[string]map[float64]int64{"a": {1: 0, 0.1: 0}, "b": {1: 6, 0.5: 8, 2: 2}, "c": {1: 10, 0.1: 10, 10: 10}, "d": {1: 6, 0.5: 8, 2: 2}, "e": {0.1: 0, 1: 0}, "f": {1: 0, 10: 0}}[s.Policy]
			if n, known := want[p.Factor]; known && p.Denied != n {
				t.Errorf("%s × %g: %d denied, want %d", s.Policy, p.Factor, p.Denied, n)
			}
		}
		last := s.Points[len(s.Points)-1]
		want := map[string]string{"a": "200000 per 1h", "b": "100 per 1h (token_bucket, burst 40)", "c": "0 per 1h", "d": "990 per 1h", "e": "10 per 1h", "f": "10000 per 1h (sliding_log)"}[s.Policy]
		if s.Requests != 10 || strings.Join(last.Limits, ",") != want {
			t.Errorf("%s × 10 of %d requests: %s, want %s", s.Policy, s.Requests, last.Limits, want)
		}
	}
}

// The times of a log are whole only if all of them are.
func TestTheTimesOfALog(t *testing.T) {
	at := func(times ...string) string {
		var log strings.Builder
		for _, time := range times {
			fmt.Fprintf(&log, `{"time":"2026-11-20T12:00:%sZ","ip":"a","method":"GET","path":"/"}`+"\n", time)
		}
		return log.String()
	}
	for log, whole := range map[string]bool{at("01", "02"): true, at("01.5", "02"): false, at("01", "02.5"): false, "": false} {
		if r := run(t, config("policies: [{name: a, limits: 9/h}]"), log); r.WholeSeconds != whole {
			t.Errorf("%q: whole seconds %t", log, r.WholeSeconds)
		}
	}
	r := run(t, config("policies: [{name: a, limits: 9/h}]"), at("10", "05", "07"))
	if r.From.Second() != 5 || r.To.Second() != 10 || r.OutOfOrder != 2 || r.LongestBack != 5*time.Second {
		t.Errorf("from %v to %v, %d out of order by %v", r.From, r.To, r.OutOfOrder, r.LongestBack)
	}
}

// A request counts once for each key and each policy, however many limits it exceeds and
// however often the store is asked.
func TestARequestCountsOnceForAKey(t *testing.T) {
	log := strings.Repeat(`{"ts":1795182936,"request":{"client_ip":"192.0.2.1","method":"POST","uri":"/","headers":{"Content-Type":["application/x-www-form-urlencoded"]}}}`+"\n", 5)
	r := run(t, config(`
policies:
  - {name: both, key: ip, limits: [2/h, 3/s, 2/d]}
  - {name: body, key: 'form["user"]', missing: own-bucket, limits: 100/h}
  - {name: first, key: ip, limits: [1/h, 1/d], dry-run: true}
  - {name: second, key: ip, limits: 100/h, dry-run: true}
  - {name: third, limits: 1/h, dry-run: true}
`), log)
	f := r
	if got := fmt.Sprint(f.Policies); got != "[{both false 3 0} {body false 0 0} {first true 0 1} {second true 0 0} {third true 0 1}]" || f.Denied != 3 || f.DryRunDenied != 1 {
		t.Errorf("the policies: %s, denied %d, by the dry run %d", got, f.Denied, f.DryRunDenied)
	}
	want := []replay.KeyReport{
		{Policy: "both", Rule: "both", Key: "192.0.2.1", Requests: 5, Denied: 3}, {Policy: "first", Rule: "first", Key: "192.0.2.1", Requests: 2, Denied: 1},
		{Policy: "third", Rule: "third", Requests: 2, Denied: 1},
	}
	if !slices.Equal(f.Keys, want) {
		t.Errorf("the keys: %+v, want %+v", f.Keys, want)
	}
	if !slices.Equal(r.Missing, []string{"body"}) {
		t.Errorf("missing: %q", r.Missing)
	}
	if r := run(t, config("policies: [{name: a, key: ip, tiers: {default: 1/h}}, {name: b, key: 'param[\"id\"]', limits: 1/h}, {name: c, key: 'cookie[\"sid\"]', limits: 1/h}]"), log); !slices.Equal(r.Missing, []string{"cookie sid", `the path value "id"`, "tier"}) {
		t.Errorf("missing: %q", r.Missing)
	}
	if r := run(t, config(`policies: [{name: a, key: 'header["user-agent"]', limits: 1/h}]`), strings.Replace(line(0, "a", "GET /"), ` "-" "agent"`, "", 1)); !slices.Equal(r.Missing, []string{"header user-agent"}) {
		t.Errorf("missing in the common format: %q", r.Missing)
	}
}

// A minute is one of the clock.
func TestTheBusiestMinuteOfAClient(t *testing.T) {
	var log strings.Builder
	for i := range 30 * 60 {
		log.WriteString(line(i, "192.0.2.1", "GET /"))
	}
	log.WriteString(line(30*60, "192.0.2.2", "GET /") + line(28*60, "192.0.2.2", "GET /")) // decided at the same time
	c := config("policies: [{name: a, key: ip, limits: 1/h fixed_window}]")
	c.HonestPerMinute = 60
	want := []replay.ClientExample{{Client: "192.0.2.1", Requests: 1800, Denied: 1799, Busiest: 60}, {Client: "192.0.2.2", Requests: 2, Denied: 1, Busiest: 2}}
	if got := run(t, c, log.String()).Clients; got.Denied != 2 || got.Honest != 2 || got.HonestDenied != 1800 || !slices.Equal(got.Examples, want) {
		t.Errorf("%+v", got)
	}
	c.HonestPerMinute = 59
	if got := run(t, c, log.String()).Clients; got.Denied != 2 || got.Honest != 1 || got.HonestDenied != 1 || !slices.Equal(got.Examples, want[1:]) {
		t.Errorf("%+v", got)
	}
}

// A bad request is denied on its route and to its client, and not by a policy. A route has the path as it was
// sent: an escaped slash separates nothing.
func TestABadRequestIsDenied(t *testing.T) {
	f := run(t, config(`policies: [{name: a, limits: 9/h}, {name: b, key: 'query["id"]', missing: reject, limits: 1/h}]`), line(0, "192.0.2.1", "GET /files/a%2F17"))
	if want := []replay.RouteReport{{Route: "GET /files/a%2F17", Requests: 1, Denied: 1}}; !slices.Equal(f.Routes, want) || f.Bad != 1 ||
		f.Clients.Denied != 1 || f.Clients.HonestDenied != 1 || f.Policies[0].Denied+f.Policies[1].Denied != 0 || f.Series.Points[0].Denied != 1 {
		t.Errorf("the routes: %+v, want %+v; the clients: %+v; the policies: %+v; over time: %+v", f.Routes, want, f.Clients, f.Policies, f.Series)
	}
}

// A log of a year is told by wider points.
func TestALongLog(t *testing.T) {
	var log strings.Builder
	for day := range 365 {
		log.WriteString(strings.Repeat(line(day*24*3600, "10.0.0.1", "GET /"), 2))
	}
	s := run(t, config("policies: [{name: a, key: ip, limits: 1/h}, {name: b, limits: 0/h, dry-run: true}]"), log.String()).Series
	var total replay.Point
	for _, p := range s.Points {
		total = replay.Point{Allowed: total.Allowed + p.Allowed, Denied: total.Denied + p.Denied, DryRunDenied: total.DryRunDenied + p.DryRunDenied}
	}
	if want := (replay.Point{Allowed: 365, Denied: 365, DryRunDenied: 365}); len(s.Points) != 1024 || total != want || s.Width != 512*time.Minute {
		t.Errorf("%d points of %v with %+v, want %+v", len(s.Points), s.Width, total, want)
	}
	for second, want := range map[int]string{24*3600 - 19: "1440 of 1m0s", 24*3600 - 18: "721 of 2m0s"} {
		s := run(t, config("policies: [{name: a, limits: 1/h}]"), line(0, "a", "GET /")+line(second, "a", "GET /")).Series
		if got := fmt.Sprintf("%d of %v", len(s.Points), s.Width); got != want {
			t.Errorf("points of a day: %s, want %s", got, want)
		}
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
	for _, sweep := range []bool{false, true} {
		c := config("policies: [{name: a, limits: 1/x}]")
		c.Sweep = sweep
		if _, err := replay.New(c); len(policy.Errors(err)) != 1 || policy.Errors(err)[0].File != "f" {
			t.Errorf("a broken file: %v", err)
		}
	}
	r := core.Must(replay.New(config("policies: [{name: a, limits: 1/h}]")))
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
	for _, line := range []string{line(0, "a", "GET /"), "nonsense\n"} {
		if err := r.Run(ctx, "log", strings.NewReader(strings.Repeat(line, 10_000))); !errors.Is(err, context.Canceled) {
			t.Errorf("a replay that is interrupted: %v", err)
		}
	}
}

// Nobody waits in a replay: the requests are those of the past.
func TestNobodyWaitsInAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config("policies: [{name: a, limits: 5/m fixed_window, wait: 5m}, {name: b, limits: 9/m, wait: 5m, dry-run: true}, {name: c, limits: 9/m}]")
		c.Sweep = true
		begun := time.Now()
		if r := run(t, c, strings.Repeat(line(0, "a", "GET /"), 20)); r.Allowed != 5 || time.Since(begun) != 0 || !slices.Equal(r.Waits, []string{"a"}) {
			t.Errorf("%d allowed after %v, want 5 at once; policies with wait: %q", r.Allowed, time.Since(begun), r.Waits)
		}
	})
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
