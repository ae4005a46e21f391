package storetest

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

//go:embed testdata/*.json.gz
var recorded embed.FS

// vectorsFolder names the environment variable for another folder of vectors.
const vectorsFolder = "FLOODGATE_VECTORS"

// vector is a recorded run of other software under a controlled clock.
type vector struct {
	Name   string        `json:"name"`
	Source string        `json:"source"`
	Limits []vectorLimit `json:"limits"`
	Keys   []string      `json:"keys"`
	Steps  []vectorStep  `json:"steps"`
}

type vectorLimit struct {
	Algorithm   string `json:"algorithm"`
	Quota       int64  `json:"quota"`
	WindowMS    int64  `json:"window_ms"`
	Burst       int64  `json:"burst"`
	PrecisionMS int64  `json:"precision_ms"`
	Aligned     bool   `json:"aligned"`
}

// vectorStep is one decision. All keys are charged together. The other recorded values hold after
// the step, rounded up to a millisecond.
type vectorStep struct {
	TimeMS       int64    `json:"t_ms"`
	Cost         int64    `json:"cost"`
	Allowed      bool     `json:"allowed"`
	Keys         []string `json:"keys"`
	Remaining    *int64   `json:"remaining"`
	ResetAfterMS *int64   `json:"reset_after_ms"`
	RetryAfterMS *int64   `json:"retry_after_ms"`
}

// Vectors replays the recorded decisions: those in the folder that the environment variable
// FLOODGATE_VECTORS names (files *.json and *.json.gz), or else those that the package holds.
func Vectors(t *testing.T, newStore Factory) {
	files, err := vectorFiles()
	if err != nil {
		t.Fatal(err)
	}
	for name, vectors := range files {
		t.Run(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".json"), func(t *testing.T) {
			clock := NewClock(time.UnixMilli(0))
			store := newStore(t, clock.Now)
			for _, v := range vectors {
				v.replay(t, store, clock)
			}
		})
	}
}

func vectorFiles() (map[string][]vector, error) {
	var folder fs.FS = recorded
	dir := "testdata"
	if name := os.Getenv(vectorsFolder); name != "" {
		folder, dir = os.DirFS(name), "."
	}
	entries, err := fs.ReadDir(folder, dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]vector{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") && !strings.HasSuffix(e.Name(), ".json.gz") {
			continue
		}
		if files[e.Name()], err = readVectors(folder, path.Join(dir, e.Name())); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no vectors in %s", os.Getenv(vectorsFolder))
	}
	return files, nil
}

func readVectors(folder fs.FS, name string) (vectors []vector, err error) {
	return vectors, readGzipped(folder, name, &vectors)
}

// readGzipped reads JSON from a file that is compressed if its name ends so.
func readGzipped(folder fs.FS, name string, into any) error {
	f, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (l vectorLimit) limit() (core.Limit, error) {
	limit := core.Limit{
		Quota:     l.Quota,
		Window:    time.Duration(l.WindowMS) * time.Millisecond,
		Burst:     l.Burst,
		Precision: time.Duration(l.PrecisionMS) * time.Millisecond,
		Aligned:   l.Aligned,
	}
	for _, a := range algorithms {
		if a.String() == l.Algorithm {
			limit.Algorithm = a
			return limit, limit.Validate()
		}
	}
	return limit, fmt.Errorf("unknown algorithm %q", l.Algorithm)
}

// algorithms are those that count hits.
var algorithms = []core.Algorithm{core.SlidingWindow, core.FixedWindow, core.BucketedWindow, core.SlidingLog, core.TokenBucket}

func (v vector) replay(t *testing.T, store core.Store, clock *Clock) {
	t.Helper()
	var limits []core.Limit
	for _, l := range v.Limits {
		limit, err := l.limit()
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			return
		}
		limits = append(limits, limit)
	}
	c := one(t, store, limits...)
	for i, step := range v.Steps {
		clock.Set(time.UnixMilli(step.TimeMS))
		keys := step.Keys
		if keys == nil {
			keys = v.Keys[:1]
		}
		var items []core.Item
		for _, k := range keys {
			items = append(items, c.item(0, k, step.Cost))
		}
		b := c.batch(false, items...)
		if diff := step.compare(b); diff != "" {
			t.Errorf("%s (recorded from %s), step %d, t_ms %d, cost %d, keys %q: %s", v.Name, v.Source, i, step.TimeMS, step.Cost, keys, diff)
			return // the steps behind it would only repeat it
		}
	}
}

func (s vectorStep) compare(b *core.Batch) string {
	if b.Allowed != s.Allowed {
		return fmt.Sprintf("allowed %v, recorded %v", b.Allowed, s.Allowed)
	}
	remaining, reset, retry := b.Items[0].Results[0].Remaining, time.Duration(0), time.Duration(0)
	for _, item := range b.Items {
		for _, r := range item.Results {
			remaining, reset, retry = min(remaining, r.Remaining), max(reset, r.ResetAfter), max(retry, r.RetryAfter)
		}
	}
	for _, c := range []struct {
		name string
		got  int64
		want *int64
	}{
		{"remaining", remaining, s.Remaining},
		{"reset_after_ms", upToMillis(reset), s.ResetAfterMS},
		{"retry_after_ms", upToMillis(retry), s.RetryAfterMS},
	} {
		if c.want != nil && c.got != *c.want {
			return fmt.Sprintf("%s %d, recorded %d", c.name, c.got, *c.want)
		}
	}
	return ""
}

func upToMillis(d time.Duration) int64 {
	n := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		n++
	}
	return n
}
