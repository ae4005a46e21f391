package dashboards

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
)

// readRules returns the rules of alerts.yml.
func readRules(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	text, err := os.ReadFile("../../observe/dashboards/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// alerts evaluates rules as Prometheus does: an alert fires if its query has had a result
// with the same labels for as long as its For.
type alerts struct {
	rules  []rulefmt.Rule
	active map[string]time.Time // by the rule and the labels: since when
	texts  map[string]string    // by the rule: what its last alert said
}

// evaluate returns the names of the alerts that fire now, and adds ALERTS to the series.
func (a *alerts) evaluate(t *testing.T, s *series, now time.Time) (firing map[string]bool) {
	t.Helper()
	firing, still := map[string]bool{}, map[string]time.Time{}
	for _, r := range a.rules {
		results, err := s.query(r.Expr, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range results {
			id := r.Alert + one.Metric.String()
			since, was := a.active[id]
			if !was {
				since = now
			}
			still[id] = since
			state := "pending"
			if now.Sub(since) >= time.Duration(r.For) {
				state, firing[r.Alert] = "firing", true
				if a.texts[r.Alert] == "" {
					a.texts[r.Alert] = expand(t, r, one)
				}
			}
			b := labels.NewBuilder(one.Metric)
			b.Set(model.MetricNameLabel, "ALERTS").Set("alertname", r.Alert).Set("alertstate", state).Set("severity", r.Labels["severity"])
			s.add(b.Labels(), now, 1)
		}
	}
	a.active = still
	return firing
}

var usedLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// expand returns the texts of an alert, and fails if they use a label that it does not have.
func expand(t *testing.T, r rulefmt.Rule, one promql.Sample) string {
	t.Helper()
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		for _, used := range usedLabel.FindAllStringSubmatch(r.Annotations[name], -1) {
			if one.Metric.Get(used[1]) == "" {
				t.Errorf("%s: the %s uses the label %s, and the alert has %s", r.Alert, name, used[1], one.Metric)
			}
		}
		data := template.AlertTemplateData(one.Metric.Map(), nil, "", one)
		text := "{{$labels := .Labels}}{{$value := .Value}}" + r.Annotations[name]
		expanded, err := template.NewTemplateExpander(context.Background(), text, r.Alert, data, model.Time(one.T), nil, &url.URL{}, nil).Expand()
		if err != nil {
			t.Errorf("%s: %s: %v", r.Alert, name, err)
		}
		texts = append(texts, expanded)
	}
	return strings.Join(texts, "\n")
}

// Whoever is woken up is told what to do.
func TestAlertsSayWhatToDo(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/dashboards.md")
	if err != nil {
		t.Fatal(err)
	}
	const docs = "https://github.com/floodgate-go/floodgate/blob/main/docs/operate/dashboards.md#"
	for _, r := range readRules(t) {
		_, section, _ := strings.Cut(string(page), "\n### "+r.Alert+"\n")
		if s := r.Labels["severity"]; s != "page" && s != "ticket" || !strings.HasPrefix(section, "\n*"+s+":*") {
			t.Errorf("%s: severity %q, and the page says another one", r.Alert, s)
		}
		if section, _, _ = strings.Cut(section, "\n### "); r.For > 0 && !strings.Contains(section, fmt.Sprintf("for %.0f minutes.", time.Duration(r.For).Minutes())) {
			t.Errorf("%s: for %v, and the page says another time", r.Alert, r.For)
		}
		if len(r.Annotations["summary"]) < 40 || len(r.Annotations["description"]) < 100 {
			t.Errorf("%s: a summary and a description are missing, or are too short", r.Alert)
		}
		if r.Annotations["runbook_url"] != docs+strings.ToLower(r.Alert) || !strings.Contains(string(page), "\n### "+r.Alert+"\n") {
			t.Errorf("%s: runbook_url %q, and docs/operate/dashboards.md has a heading: %v", r.Alert, r.Annotations["runbook_url"], strings.Contains(string(page), r.Alert))
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllSubmatch(page, -1) {
		if !slices.ContainsFunc(readRules(t), func(r rulefmt.Rule) bool { return r.Alert == string(m[1]) }) {
			t.Errorf("docs/operate/dashboards.md has %s, which is no alert", m[1])
		}
	}
}
