package replay_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

// A limit of what is in flight is left out also for a key that has quotas of its own.
func TestASlotIsLeftOutForAKeyWithQuotas(t *testing.T) {
	c := config("policies: [{name: a, key: user, missing: skip, limits: [{in-flight: 1, name: slots}, 5/m], quotas: {ann: 8/m}}]")
	f := run(t, c, strings.Repeat(strings.ReplaceAll(line(0, "192.0.2.1", "GET /"), "- - [", "- ann ["), 20)).Files[0]
	if f.Allowed != 8 || !slices.Equal(f.LeftOut, []string{"slots"}) {
		t.Errorf("%d allowed, want 8; left out: %q, want slots", f.Allowed, f.LeftOut)
	}
}

// Two lines whose times are wrong do not confirm each other.
func TestTwoWrongTimesThatAgreeAreLeftOut(t *testing.T) {
	const years = 10 * 365 * 86400
	var log strings.Builder
	for i := range 200 {
		if i == 50 || i == 60 || i == 61 {
			log.WriteString(line(years+i, "192.0.2.1", "GET /wrong"))
		}
		log.WriteString(line(i, "192.0.2.1", "GET /"))
	}
	if r := run(t, config("policies: [{name: a, limits: 9/h}]"), log.String()); r.Outliers != 3 || r.Requests != 200 || !r.To.Equal(begin.Add(199*time.Second)) {
		t.Errorf("%d left out and %d requests until %v, want 3 and 200", r.Outliers, r.Requests, r.To)
	}
}

// The first line of a log is compared with the last lines of the log before it.
func TestTheFirstLineOfTheSecondLog(t *testing.T) {
	lines := func(from int) string {
		var log strings.Builder
		for i := range 100 {
			log.WriteString(line(from+i, "192.0.2.1", "GET /"))
		}
		return log.String()
	}
	wrong := line(-2*86400, "192.0.2.1", "GET /")
	if r := run(t, config("policies: [{name: a, limits: 9/h}]"), lines(0), wrong+lines(100)); r.Outliers != 1 || r.Requests != 200 {
		t.Errorf("%d left out and %d requests, want 1 and 200", r.Outliers, r.Requests)
	}
}

// slowly is a reader that takes a second for each part.
type slowly struct {
	parts   []string
	reading bool
}

func (s *slowly) Read(p []byte) (int, error) {
	s.reading = true
	time.Sleep(time.Second)
	s.reading = false
	n := copy(p, s.parts[0])
	if s.parts[0] = s.parts[0][n:]; s.parts[0] == "" && len(s.parts) > 1 {
		s.parts = s.parts[1:]
	}
	return n, nil
}

// A replay that ends early no longer reads the log: its caller closes the file.
func TestNobodyReadsALogAfterTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config("policies: [{name: a, limits: 9/h}]")
		c.StopAtOutlier = true
		r, err := replay.New(c)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close() //nolint:errcheck // its counters are in memory
		log := &slowly{parts: []string{line(0, "a", "GET /") + line(10*365*86400, "a", "GET /") + strings.Repeat(line(0, "a", "GET /"), 600)}}
		for range 9 {
			log.parts = append(log.parts, strings.Repeat(line(0, "a", "GET /"), 3000))
		}
		if err := r.Run(t.Context(), replay.Log{Name: "log", Reader: log}); err == nil {
			t.Error("an outlier is no error")
		}
		synctest.Wait()
		if log.reading {
			t.Error("the log is still being read")
		}
	})
}

// Close ends what New has begun, for all files and their sweeps, and so does New if it fails.
func TestNothingGoesOnAfterAReplay(t *testing.T) {
	const file = "policies: [{name: a, key: user, missing: skip, limits: 5/m}]"
	c := config(file, file)
	c.Sweep = true
	run(t, c, line(0, "a", "GET /"))
	goleak.VerifyNone(t)
	c.Files = append(c.Files, replay.File{Name: "broken", Text: []byte("policies: []")})
	if _, err := replay.New(c); err == nil {
		t.Error("a broken file is taken")
	}
	goleak.VerifyNone(t)
}
