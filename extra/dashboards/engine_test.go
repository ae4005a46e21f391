package dashboards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

var engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true})

// query returns what a query gives at a time.
func (s *series) query(expr string, at time.Time) (promql.Vector, error) {
	q, err := engine.NewInstantQuery(context.Background(), s, nil, expr, at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	defer q.Close()
	r := q.Exec(context.Background())
	if r.Err != nil {
		return nil, fmt.Errorf("%s: %w", expr, r.Err)
	}
	for _, w := range r.Warnings.AsErrors() {
		return nil, fmt.Errorf("%s: a warning: %w", expr, w)
	}
	v, err := r.Vector()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	kept := make(promql.Vector, len(v)) // Close takes v back
	for i := range v {
		kept[i] = promql.Sample{Metric: v[i].Metric.Copy(), T: v[i].T, F: v[i].F}
	}
	return kept, nil
}

// named reports the metrics and labels of a query that the series do not have, and those
// values that a label is compared with and does not have. Values of results that have not
// happened are checked by the state in which a query must show something.
func (s *series) named(expr string) error {
	e, err := parser.ParseExpr(expr)
	if err != nil {
		return fmt.Errorf("%s: %w", expr, err)
	}
	var errs []error
	known := map[string]bool{}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		selector, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		found := s.of(selector.Name)
		if len(found) == 0 {
			errs = append(errs, fmt.Errorf("%s: no metric %s", expr, selector.Name))
			return nil
		}
		for _, one := range found {
			one.labels.Range(func(l labels.Label) { known[l.Name] = true })
		}
		for _, m := range selector.LabelMatchers {
			has := func(one *oneSeries) bool { return one.labels.Has(m.Name) }
			if !slices.ContainsFunc(found, has) {
				errs = append(errs, fmt.Errorf("%s: %s has no label %s", expr, selector.Name, m.Name))
			} else if !slices.ContainsFunc(found, func(one *oneSeries) bool { return m.Matches(one.labels.Get(m.Name)) }) {
				errs = append(errs, fmt.Errorf("%s: no series of %s has %s", expr, selector.Name, m))
			}
		}
		return nil
	})
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		var by []string
		switch n := n.(type) {
		case *parser.AggregateExpr:
			by = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				by = slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include)
			}
		}
		for _, l := range by {
			if !known[l] {
				errs = append(errs, fmt.Errorf("%s: no metric has the label %s", expr, l))
			}
		}
		return nil
	})
	return errors.Join(errs...)
}

// The checks of this package find what they are for.
func TestNamed(t *testing.T) {
	s := newSeries()
	if err := s.parse([]byte("a{x=\"1\"} 5\nb{x=\"1\",y=\"2\"} 6\n"), "text/plain; version=0.0.4", time.Unix(1000, 0)); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		`sum by (x) (a) / sum by (x) (b)`:         "",
		`a{job="site"} / on (x) group_left (y) b`: "",
		`sum(c)`:                       "no metric c",
		`rate(a{z="1"}[5m])`:           "a has no label z",
		`a{y="2"}`:                     "a has no label y",
		`a{x="3"}`:                     `no series of a has x="3"`,
		`sum by (z) (a)`:               "no metric has the label z",
		`a / on (x) group_left (z) b`:  "no metric has the label z",
		`a +`:                          "parse error",
		`sum without (q) (b{x=~"1|"})`: "no metric has the label q",
	} {
		err := s.named(expr)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
	if v, err := s.query("a * 2", time.Unix(1001, 0)); err != nil || len(v) != 1 || v[0].F != 10 {
		t.Errorf("%v, %v", v, err)
	}
}
