package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

func TestAReportNamesItsLogsAndFiles(t *testing.T) {
	r := run(t, config("policies: [{name: a, limits: 9/h}]", "policies: [{name: b, limits: 9/h}]"), line(0, "a", "GET /"), line(1, "a", "GET /"))
	if !slices.Equal(r.Logs, []string{"log0", "log1"}) || len(r.Files) != 2 || r.Files[0].File != "f0" || r.Files[1].File != "f1" || r.Files[0].Sweeps != nil {
		t.Errorf("%+v", r)
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

func TestTheDefaultToleranceIsFiveMinutes(t *testing.T) {
	for ahead, outliers := range map[int]int64{300: 0, 301: 1} {
		var log strings.Builder
		for i := range 100 {
			second := 0
			if i == 50 {
				second = ahead
			}
			log.WriteString(line(second, "a", "GET /"))
		}
		if r := run(t, config("policies: [{name: a, limits: 9/h}]"), log.String()); r.Outliers != outliers {
			t.Errorf("%d seconds ahead: %d outliers, want %d", ahead, r.Outliers, outliers)
		}
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
`), log)
	f := r.Files[0]
	if got := fmt.Sprint(f.Policies); got != "[{both false 3 0} {body false 0 0} {first true 0 1} {second true 0 0}]" || f.Denied != 3 || f.DryRunDenied != 1 {
		t.Errorf("the policies: %s, denied %d, by the dry run %d", got, f.Denied, f.DryRunDenied)
	}
	want := []replay.KeyReport{{Policy: "both", Rule: "both", Key: "192.0.2.1", Requests: 5, Denied: 3}, {Policy: "first", Rule: "first", Key: "192.0.2.1", Requests: 2, Denied: 1}}
	if !slices.Equal(f.Keys, want) {
		t.Errorf("the keys: %+v, want %+v", f.Keys, want)
	}
	if !slices.Equal(r.Missing, []string{"body"}) {
		t.Errorf("missing: %q", r.Missing)
	}
	if r := run(t, config("policies: [{name: a, key: ip, tiers: {default: 1/h}}]"), log); !slices.Equal(r.Missing, []string{"tier"}) {
		t.Errorf("missing: %q", r.Missing)
	}
}

// A minute is one of the clock.
func TestTheBusiestMinuteOfAClient(t *testing.T) {
	var log strings.Builder
	for i := range 30 * 60 {
		log.WriteString(line(i, "192.0.2.1", "GET /"))
	}
	log.WriteString(line(30*60, "192.0.2.2", "GET /") + line(30*60, "192.0.2.2", "GET /"))
	c := config("policies: [{name: a, key: ip, limits: 1/h fixed_window}]")
	c.HonestPerMinute = 60
	want := []replay.ClientExample{{Client: "192.0.2.1", Requests: 1800, Denied: 1799, Busiest: 60}, {Client: "192.0.2.2", Requests: 2, Denied: 1, Busiest: 2}}
	if got := run(t, c, log.String()).Files[0].Clients; got.Denied != 2 || got.Honest != 2 || got.HonestDenied != 1800 || !slices.Equal(got.Examples, want) {
		t.Errorf("%+v", got)
	}
	c.HonestPerMinute = 59
	if got := run(t, c, log.String()).Files[0].Clients; got.Denied != 2 || got.Honest != 1 || got.HonestDenied != 1 || !slices.Equal(got.Examples, want[1:]) {
		t.Errorf("%+v", got)
	}
}
