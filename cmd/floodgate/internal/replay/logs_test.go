package replay_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/policy"
)

// A log of a year is told by wider points.
func TestALongLog(t *testing.T) {
	var log strings.Builder
	for day := range 365 {
		log.WriteString(line(day*24*3600, "10.0.0.1", "GET /"))
	}
	s := run(t, config("policies: [{name: a, key: ip, limits: 1/h}]"), log.String()).Series
	var total int64
	for _, p := range s.Points {
		total += p.Allowed + p.Denied
	}
	if len(s.Points) > 1440 || total != 365 || s.Width < time.Hour {
		t.Errorf("%d points of %v with %d requests", len(s.Points), s.Width, total)
	}
}

// At most twenty lines that cannot be read are shown, each with its first 200 bytes.
func TestSamples(t *testing.T) {
	for wrong, want := range map[int]int{0: 0, 20: 20, 25: 20} {
		if r := run(t, config("policies: [{name: a, limits: 9/h}]"), line(0, "a", "GET /")+strings.Repeat(strings.Repeat("x", 300)+"\n", wrong)); len(r.Samples) != want || r.Malformed != int64(wrong) || want > 0 && len(r.Samples[0].Text) != 200 {
			t.Errorf("%d wrong lines: %d samples, want %d of 200 bytes", wrong, len(r.Samples), want)
		}
	}
}

func TestWhatEndsAReplay(t *testing.T) {
	if _, err := replay.New(config("policies: [{name: a, limits: 1/x}]")); len(policy.Errors(err)) != 1 {
		t.Errorf("a broken file: %v", err)
	}
	r, err := replay.New(config("policies: [{name: a, limits: 1/h}]"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	whole := strings.Repeat(line(0, "a", "GET /"), 5)
	if err := r.Run(t.Context(), "log", strings.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is gone")
	nonsense := io.MultiReader(strings.NewReader("nonsense\n"), iotest.ErrReader(broken))
	if err := r.Run(t.Context(), "log", nonsense); !errors.Is(err, broken) {
		t.Errorf("a log that cannot be read to its end: %v", err)
	}
	if err := r.Run(t.Context(), "log", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a log that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx, "log", strings.NewReader(strings.Repeat(line(0, "a", "GET /"), 10_000))); !errors.Is(err, context.Canceled) {
		t.Errorf("a replay that is interrupted: %v", err)
	}
}

// A request takes no time: of each ten that come at once, no limit of requests in flight
// denies one, in a sweep neither.
func TestRequestsOfALogEndAtOnce(t *testing.T) {
	c := config("policies: [{name: a, key: ip, in-flight: 1, limits: 8/m}]")
	c.Sweep = true
	f := run(t, c, strings.Repeat(line(0, "192.0.2.1", "GET /"), 20))
	if f.Allowed != 8 || f.Denied != 12 {
		t.Errorf("%d allowed and %d denied, want 8 and 12", f.Allowed, f.Denied)
	}
	for _, p := range f.Sweeps[0].Points {
		if want := max(0, 20-max(1, int64(8*p.Factor+0.5))); p.Denied != want {
			t.Errorf("× %g: %d denied, want %d", p.Factor, p.Denied, want)
		}
	}
}
