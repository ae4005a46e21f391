// Package dashboards tests the dashboard and the alerts of observe/dashboards: every query runs in
// the Prometheus engine, over known counts. The alerts run over the metrics of extra/examples/monitoring
// too, while it is healthy, attacked, and without its store.
package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// dashboard is what the test reads of grafana.json.
type dashboard struct {
	ID          *int   `json:"id"`
	UID         string `json:"uid"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Panels      []panel
	Annotations struct {
		List []struct{ Name, Expr, Type string }
	}
	Templating struct{ List []variable }
}

type variable struct {
	Name, Type, Definition string
	Query                  any
}

type panel struct {
	ID                       int
	Title, Type, Description string
	Datasource               datasource
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []step }
		}
	}
	Targets []struct {
		Datasource          datasource
		Expr, LegendFormat  string
		RefID               string `json:"refId"`
		Range, Instant, Hid bool
	}
}

type step struct {
	Color string
	Value float64
}

type datasource struct{ Type, UID string }

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../../observe/dashboards/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// chosen is a query with what Grafana puts in place of variables, if all is chosen and the
// metrics are read once a minute.
func chosen(query string) string {
	return strings.NewReplacer("$__rate_interval", "4m", "$job", ".*", "$limiter", ".*").Replace(query)
}

// shows is what each panel shows for the metrics of TestValues.
var shows = map[string]string{
	"Requests":                        "2, reqps",
	"Denied":                          "0.25, percentunit, red from 0.2",
	"Failed":                          "0.1, reqps, red from 0.001",
	"Degraded":                        "0.05, percentunit, red from 0.01",
	"In line":                         "7, none",
	"Requests by result":              "allowed 1, denied 0.5, dry_run 0.2, failed 0.1, skipped 0.2, reqps",
	"Denied by rule":                  "site l r 0.25, percentunit",
	"Near the limit":                  "site l l 0.3, percentunit",
	"Would be denied":                 "site l r 0.2, reqps",
	"How long the store takes":        "site l half 0.75, site l 95 % 1.944, site l 99 % 2, s",
	"Operations of the store":         "site l take 0.5, ops",
	"Errors of the store":             "site l take 0.2, percentunit",
	"Without the shared counters":     "site l 0.05, percentunit",
	"Requests in line":                "site l r 7, none",
	"Time in line":                    "site l r denied 0.95, s",
	"Attempts to log in":              "site l denied 0.2, site l failed 0.15, site l succeeded 0.05, site l suspected 0.1, reqps",
	"Failed logins":                   "site l 0.75, percentunit",
	"Attempts on suspicious accounts": "site l 0.1, reqps",
}

// Each panel shows what its title says: a share of the right whole, a rate a second, a percentile.
func TestValues(t *testing.T) {
	s, now, label := newSeries(), time.Unix(1_800_000_000, 0), regexp.MustCompile(`\{\{\w+\}\}`)
	for i := range 10 {
		text := "floodgate_rate_limiting_queued_requests{limiter=\"l\",rule=\"r\"} 7\n"
		for name, perMinute := range map[string]int{
			`requests_total{limit="l",limiter="l",result="allowed",rule="r"}`: 60, `requests_total{limit="l",limiter="l",result="denied",rule="r"}`: 30, `requests_total{limit="l",limiter="l",result="dry_run",rule="r"}`: 12,
			`requests_total{limit="",limiter="l",result="failed",rule=""}`: 6, `requests_total{limit="",limiter="l",result="skipped",rule=""}`: 12,
			`near_limit_total{limit="l",limiter="l",rule="r"}`: 18, `degraded_total{limiter="l"}`: 6,
			`store_errors_total{limiter="l",operation="take"}`: 6, `store_duration_seconds_count{limiter="l",operation="take"}`: 30,
			`store_duration_seconds_bucket{le="1",limiter="l",operation="take"}`: 20, `store_duration_seconds_bucket{le="2",limiter="l",operation="take"}`: 29, `store_duration_seconds_bucket{le="+Inf",limiter="l",operation="take"}`: 30,
			`request_time_in_queue_seconds_bucket{le="1",limiter="l",result="denied",rule="r"}`: 9, `request_time_in_queue_seconds_bucket{le="+Inf",limiter="l",result="denied",rule="r"}`: 9,
			`request_time_in_queue_seconds_count{limiter="l",result="denied",rule="r"}`: 9, `request_time_in_queue_seconds_count{limiter="l",result="allowed",rule="r"}`: 27,
			`events_total{event="failed",limiter="l"}`: 9, `events_total{event="succeeded",limiter="l"}`: 3, `events_total{event="suspected",limiter="l"}`: 6, `events_total{event="denied",limiter="l"}`: 12,
		} {
			text += fmt.Sprintf("floodgate_rate_limiting_%s %d\n", name, i*perMinute)
		}
		if err := s.parse([]byte(text), "text/plain; version=0.0.4", now.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	values := func(query, legend string) (all []string) {
		t.Helper()
		found, err := s.query(chosen(query), now.Add(9*time.Minute))
		if err != nil {
			t.Error(err)
		}
		for _, v := range found {
			text := label.ReplaceAllStringFunc(legend, func(name string) string { return v.Metric.Get(strings.Trim(name, "{}")) })
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %.4g", text, v.F)))
		}
		slices.Sort(all)
		return all
	}
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			continue
		}
		var got []string
		for _, q := range p.Targets {
			got = append(got, values(q.Expr, q.LegendFormat)...)
			if strings.Count(q.Expr, `{job=~"$job", limiter=~"$limiter"`) != strings.Count(q.Expr, "floodgate_") {
				t.Errorf("panel %q shows jobs or limiters that are not chosen: %s", p.Title, q.Expr)
			}
		}
		got = append(got, p.FieldConfig.Defaults.Unit)
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps[1:] {
			got = append(got, fmt.Sprint(step.Color, " from ", step.Value))
		}
		if got := strings.Join(got, ", "); got != shows[p.Title] {
			t.Errorf("panel %q shows %s, want %s", p.Title, got, shows[p.Title])
		}
	}
	threshold := regexp.MustCompile(`> [\d.]+`)
	for _, r := range readRules(t) {
		got := strings.Join(append(values(threshold.ReplaceAllString(r.Expr, ""), ""), threshold.FindAllString(r.Expr, -1)...), " ")
		if got != compares[r.Alert] {
			t.Errorf("alert %s compares %s, want %s", r.Alert, got, compares[r.Alert])
		}
	}
}

// compares has the value and the threshold of each alert in TestValues.
var compares = map[string]string{
	"FloodgateFailing":        "0.05 > 0.01",
	"FloodgateDegraded":       "0.05 > 0.01",
	"FloodgateStoreErrors":    "0.2 > 0.01",
	"FloodgateStoreSlow":      "1.944 > 0.05",
	"FloodgateDenyingMany":    "0.25 > 0.2 > 0.1",
	"FloodgateNearLimit":      "0.3 > 0.1 > 0.1",
	"FloodgateQueueTooSlow":   "0.25 > 0.2",
	"FloodgateLoginSuspicion": "54 > 0",
	"FloodgateLoginFailures":  "0.75 > 0.7 > 0.05",
}

// A user can import the dashboard as it is.
func TestDashboardCanBeImported(t *testing.T) {
	d := readDashboard(t)
	if d.ID != nil || d.UID == "" || d.Title == "" || d.Description == "" {
		t.Errorf("id %v, uid %q, title %q, description %q", d.ID, d.UID, d.Title, d.Description)
	}
	ids, taken := map[int]bool{}, map[string]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: the id is there twice, or it has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				at := fmt.Sprint(x, ",", y)
				if other, is := taken[at]; is || x > 23 {
					t.Fatalf("panel %q is over panel %q, or beside the page", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if _, known := shows[p.Title]; !known || len(p.Targets) == 0 || len(p.Description) < 30 {
			t.Errorf("panel %q: no query, no description, or the test does not know it", p.Title)
		}
		variable := datasource{"prometheus", "${datasource}"}
		for _, q := range p.Targets {
			if q.Datasource != variable || p.Datasource != variable || q.Instant || !q.Range {
				t.Errorf("panel %q: %+v", p.Title, q)
			}
		}
	}
	if len(shows) != len(ids)-5 { // five rows
		t.Errorf("%d panels, and the test knows %d", len(ids)-5, len(shows))
	}
}
