package dashboards

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// Every alert fires in its state and in no other one.
func TestQueries(t *testing.T) {
	s, d := startSite(t), readDashboard(t)
	a := &alerts{rules: readRules(t), active: map[string]time.Time{}, texts: map[string]string{}}
	s.live(a, healthy)
	for _, st := range states {
		s.live(a, st)
		s.live(a, state{name: "healthy after " + st.name})
	}
	for _, r := range a.rules {
		if !slices.ContainsFunc(states, func(st state) bool { return slices.Contains(st.fires, r.Alert) }) {
			t.Errorf("alert %s: no state of the test is for it", r.Alert)
		}
		if a.texts[r.Alert] == "" {
			t.Errorf("alert %s: it has said nothing", r.Alert)
		}
	}
	s.checkVariables(d)
}

// live lets a state last, and checks what fires.
func (s *site) live(a *alerts, st state) {
	s.Helper()
	if st.begin != nil {
		st.begin(s)
	}
	fired := map[string]bool{}
	var firing map[string]bool
	for range minutes {
		s.now = s.now.Add(time.Minute)
		if st.minute == nil {
			calm(s)
			s.scrape(s.T, s.url+"/metrics", s.now)
		} else if !st.minute(s) {
			s.scrape(s.T, s.url+"/metrics", s.now)
		}
		firing = a.evaluate(s.T, s.series, s.now)
		for name := range firing {
			fired[name] = true
		}
	}
	if st.end != nil {
		st.end(s)
	}
	if st.minute == nil { // also after a state: what has fired in it is silent in the end
		if st.name == healthy.name {
			firing = fired
		}
		if len(firing) > 0 {
			s.Errorf("the site is %s, and %v fires", st.name, firing)
		}
		return
	}
	for _, name := range st.fires {
		if !fired[name] {
			s.Errorf("the site is %s, and %s did not fire", st.name, name)
		}
	}
	for name := range fired {
		if !slices.Contains(st.fires, name) && !slices.Contains(st.may, name) {
			s.Errorf("the site is %s, and %s fired", st.name, name)
		}
	}
}

// degrades reports whether a limiter decides without the store now. Each has a circuit of its own.
func (s *site) degrades() bool {
	count := func() (sum float64) {
		now := newSeries()
		now.scrape(s.T, s.url+"/metrics", s.now)
		for _, one := range now.of("floodgate_rate_limiting_degraded_total") {
			sum += one.samples[0].F()
		}
		return sum
	}
	before := count()
	s.get("/api", s.stranger())
	s.logIn("ann", "correct horse", s.stranger())
	return count() != before
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// checkVariables checks the variables and annotations of the dashboard.
func (s *site) checkVariables(d dashboard) {
	s.Helper()
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil {
			s.Errorf("variable %s: %q", v.Name, v.Definition)
			continue
		}
		if v, err := s.query("sum by ("+m[2]+") ("+chosen(m[1])+")", s.now); err != nil || len(v) == 0 || v[0].Metric.Get(m[2]) == "" {
			s.Errorf("variable %s: %v, %v", m[2], v, err)
		}
	}
	for _, n := range d.Annotations.List {
		if n.Expr == "" {
			continue
		}
		if v, err := s.query("max_over_time("+chosen(n.Expr)+"[20h])", s.now); err != nil || len(v) == 0 || v[0].Metric.Get(labels.AlertName) == "" {
			s.Errorf("annotation %s shows nothing: %v", n.Name, err)
		}
	}
}
