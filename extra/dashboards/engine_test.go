package dashboards

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql"
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
