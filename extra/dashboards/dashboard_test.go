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
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct {
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

// shows is the state in which each panel must show something above 0, and whether it shows
// nothing, or 0, while the site is healthy.
var shows = map[string]struct {
	state string
	quiet bool
}{
	"Requests":                        {"healthy", false},
	"Denied":                          {"attacked", true},
	"Failed":                          {"without the store", true},
	"Degraded":                        {"without the store", true},
	"In line":                         {"crowded", true},
	"Requests by result":              {"healthy", false},
	"Denied by rule":                  {"attacked", true},
	"Near the limit":                  {"near", true},
	"Would be denied":                 {"near", true}, // the planned limit gets what the other one allows
	"How long the store takes":        {"healthy", false},
	"Operations of the store":         {"healthy", false},
	"Errors of the store":             {"without the store", true},
	"Without the shared counters":     {"without the store", true},
	"Requests in line":                {"crowded", true},
	"Time in line":                    {"crowded", true},
	"Attempts to log in":              {"healthy", false},
	"Failed logins":                   {"guessed at", false},
	"Attempts on suspicious accounts": {"guessed at", true},
}

var percent = regexp.MustCompile(`(\d+) %$`)

// A user can import the dashboard as it is.
func TestDashboardCanBeImported(t *testing.T) {
	d := readDashboard(t)
	if d.ID != nil || d.UID == "" || d.Title == "" || d.Description == "" {
		t.Errorf("id %v, uid %q, title %q, description %q", d.ID, d.UID, d.Title, d.Description)
	}
	ids, taken, units := map[int]bool{}, map[string]string{}, map[string]bool{"reqps": true, "percentunit": true, "none": true, "s": true, "ops": true}
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
		if _, known := shows[p.Title]; !known || len(p.Targets) == 0 || len(p.Description) < 30 || !units[p.FieldConfig.Defaults.Unit] {
			t.Errorf("panel %q: no query, no description, no unit, or the test does not know it", p.Title)
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
