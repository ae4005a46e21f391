// Package dashboards tests the dashboard and the alerts of observe/dashboards: every
// query runs in the Prometheus engine, over the metrics that the program
// extra/examples/monitoring reported while it was healthy, attacked, and without its store.
package dashboards

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
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
			Thresholds struct {
				Steps []struct {
					Color string
					Value float64
				}
			}
		}
	}
	Targets []struct {
		Datasource          datasource
		Expr, LegendFormat  string
		RefID               string `json:"refId"`
		Range, Instant, Hid bool
	}
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

// shows is the state in which each panel must show something above 0, whether it shows
// nothing, or 0, while the site is healthy, and what it shows of the metrics of TestValues.
var shows = map[string]struct {
	state string
	quiet bool
	value string
}{
	"Requests":                        {"healthy", false, "2 reqps"},
	"Denied":                          {"attacked", true, "0.25 percentunit red from 0.2"},
	"Failed":                          {"without the store", true, "0.1 reqps red from 0.001"},
	"Degraded":                        {"without the store", true, "0.05 percentunit red from 0.01"},
	"In line":                         {"crowded", true, "7 none"},
	"Requests by result":              {"healthy", false, "0.1 0.2 0.2 0.5 1 reqps"},
	"Denied by rule":                  {"attacked", true, "0.25 percentunit"},
	"Near the limit":                  {"near", true, "0.3 percentunit"},
	"Would be denied":                 {"near", true, "0.2 reqps"}, // the planned limit gets what the other one allows
	"How long the store takes":        {"healthy", false, "0.75 1.944 2 s"},
	"Operations of the store":         {"healthy", false, "0.5 ops"},
	"Errors of the store":             {"without the store", true, "0.2 percentunit"},
	"Without the shared counters":     {"without the store", true, "0.05 percentunit"},
	"Requests in line":                {"crowded", true, "7 none"},
	"Time in line":                    {"crowded", true, "0.95 s"},
	"Attempts to log in":              {"healthy", false, "0.05 0.1 0.15 reqps"},
	"Failed logins":                   {"guessed at", false, "0.75 percentunit"},
	"Attempts on suspicious accounts": {"guessed at", true, "0.1 reqps"},
}

// Each panel shows what its title says: a share of the right whole, a rate a second, a percentile.
func TestValues(t *testing.T) {
	s, now := newSeries(), time.Unix(1_800_000_000, 0)
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
			`events_total{event="failed",limiter="l"}`: 9, `events_total{event="succeeded",limiter="l"}`: 3, `events_total{event="suspected",limiter="l"}`: 6,
		} {
			text += fmt.Sprintf("floodgate_rate_limiting_%s %d\n", name, i*perMinute)
		}
		if err := s.parse([]byte(text), "text/plain; version=0.0.4", now.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	values := func(query string) (all []string) {
		t.Helper()
		found, err := s.query(chosen(query), now.Add(9*time.Minute))
		if err != nil {
			t.Error(err)
		}
		for _, v := range found {
			all = append(all, fmt.Sprintf("%.4g", v.F))
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
			got = append(got, values(q.Expr)...)
		}
		got = append(got, p.FieldConfig.Defaults.Unit)
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps[1:] {
			got = append(got, fmt.Sprint(step.Color, " from ", step.Value))
		}
		if got := strings.Join(got, " "); got != shows[p.Title].value {
			t.Errorf("panel %q shows %s, want %s", p.Title, got, shows[p.Title].value)
		}
	}
	threshold := regexp.MustCompile(`> [\d.]+`)
	for _, r := range readRules(t) {
		got := strings.Join(append(values(threshold.ReplaceAllString(r.Expr, "")), threshold.FindAllString(r.Expr, -1)...), " ")
		if got != compares[r.Alert] {
			t.Errorf("alert %s compares %s, want %s", r.Alert, got, compares[r.Alert])
		}
	}
}

// compares has what each alert compares with which thresholds in TestValues.
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

var percent = regexp.MustCompile(`(\d+) %$`)

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
			if of := percent.FindStringSubmatch(q.LegendFormat); of != nil && !strings.HasPrefix(q.Expr, "histogram_quantile(0."+of[1]+",") {
				t.Errorf("panel %q: %q shows %s", p.Title, q.LegendFormat, q.Expr)
			}
		}
	}
	if len(shows) != len(ids)-5 { // five rows
		t.Errorf("%d panels, and the test knows %d", len(ids)-5, len(shows))
	}
}

// most returns the greatest value of a query from start to end, and what it is of. NaN does
// not count.
func (s *series) most(t *testing.T, expr string, start, end time.Time) (value float64, of promql.Series) {
	t.Helper()
	q, err := engine.NewRangeQuery(t.Context(), s, nil, expr, start, end, time.Minute)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer q.Close()
	m, err := q.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	value = math.Inf(-1)
	for _, one := range m {
		for _, p := range one.Floats {
			if p.F > value {
				value, of = p.F, promql.Series{Metric: one.Metric.Copy()}
			}
		}
	}
	return value, of
}

var legendLabel = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// checkPanels checks what the panels show in a state that has lasted from start to end.
func (s *site) checkPanels(d dashboard, name string, start, end time.Time) {
	s.Helper()
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			value, of := s.most(s.T, chosen(q.Expr), start, end)
			switch {
			case shows[p.Title].state == name && value <= 0:
				s.Errorf("panel %q shows %v %s while the site is %s: %s", p.Title, value, of.Metric, name, chosen(q.Expr))
			case name == healthy.name && shows[p.Title].quiet && value > 0:
				s.Errorf("panel %q shows %v %s while the site is healthy: %s", p.Title, value, of.Metric, chosen(q.Expr))
			}
			for _, l := range legendLabel.FindAllStringSubmatch(q.LegendFormat, -1) {
				if value > 0 && of.Metric.Get(l[1]) == "" {
					s.Errorf("panel %q: the legend %q, and the series is %s", p.Title, q.LegendFormat, of.Metric)
				}
			}
		}
	}
}
