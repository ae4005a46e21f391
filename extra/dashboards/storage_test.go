package dashboards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// series are the samples of a test, which the engine reads: a storage.Queryable.
type series struct {
	all map[string]*oneSeries
}

type oneSeries struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// sample is a number at a time: a chunks.Sample.
type sample struct {
	t int64 // milliseconds
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

func newSeries() *series { return &series{map[string]*oneSeries{}} }

// add adds a sample, which must be the latest of its series.
func (s *series) add(l labels.Labels, at time.Time, value float64) {
	one := s.all[l.String()]
	if one == nil {
		one = &oneSeries{labels: l}
		s.all[l.String()] = one
	}
	one.samples = append(one.samples, sample{at.UnixMilli(), value})
}

// scrape adds what a program tells at a url, as if it were read at a time.
func (s *series) scrape(t *testing.T, url string, at time.Time) {
	t.Helper()
	r, err := http.Get(url) //nolint:gosec // the test's own program
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %v", url, r.Status, err)
	}
	if err := s.parse(text, r.Header.Get("Content-Type"), at); err != nil {
		t.Fatal(err)
	}
}

func (s *series) parse(text []byte, contentType string, at time.Time) error {
	p, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", contentType, err)
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, value := p.Series()
		b := labels.NewBuilder(l) // as Prometheus does
		b.Set("job", "site").Set("instance", "site:8080")
		s.add(b.Labels(), at, value)
	}
}

// of returns the series of a metric.
func (s *series) of(metric string) (found []*oneSeries) {
	for _, one := range s.all {
		if one.labels.Get(model.MetricNameLabel) == metric {
			found = append(found, one)
		}
	}
	return found
}

// Querier implements storage.Queryable.
func (s *series) Querier(from, to int64) (storage.Querier, error) { return querier{s, from, to}, nil }

type querier struct {
	*series

	from, to int64
}

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, one := range q.all {
		if slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			continue
		}
		within := slices.DeleteFunc(slices.Clone(one.samples), func(s chunks.Sample) bool { return s.T() < q.from || s.T() > q.to })
		found = append(found, storage.NewListSeries(one.labels, within))
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &set{found, -1}
}

func (q querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errors.ErrUnsupported
}

func (q querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errors.ErrUnsupported
}

func (q querier) Close() error { return nil }

// set is a storage.SeriesSet.
type set struct {
	all []storage.Series
	at  int
}

func (s *set) Next() bool {
	s.at++
	return s.at < len(s.all)
}
func (s *set) At() storage.Series                { return s.all[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }
