package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
	"github.com/floodgate-go/floodgate/policy"
)

// Of many keys only so many are held; those that were denied most are among
// them.
func TestMemoryIsBounded(t *testing.T) {
	var log strings.Builder
	for i := range 5000 {
		log.WriteString(line(i/100, fmt.Sprintf("10.1.%d.%d", i/250, i%250), "GET /"))
		if i%10 == 0 {
			log.WriteString(line(i/100, "10.0.0.1", "GET /"))
		}
	}
	c := config("policies: [{name: a, key: ip, limits: 1/h}]")
	c.MaxKeys = 100
	f := run(t, c, log.String()).Files[0]
	if len(f.Keys) == 0 || f.Keys[0].Key != "10.0.0.1" || f.Keys[0].Denied < 499-f.KeysMissed || f.Keys[0].Denied > 499 || f.KeysMissed == 0 || f.Denied != 499 {
		t.Errorf("keys %+v, missed %d, denied %d", f.Keys, f.KeysMissed, f.Denied)
	}
	// A log of a year is told by wider points.
	log.Reset()
	for day := range 365 {
		log.WriteString(line(day*24*3600, "10.0.0.1", "GET /"))
	}
	s := run(t, c, log.String()).Files[0].Series
	var total int64
	for _, p := range s.Points {
		total += p.Allowed + p.Denied
	}
	if len(s.Points) > 4096 || total != 365 || s.Width < time.Hour {
		t.Errorf("%d points of %v with %d requests", len(s.Points), s.Width, total)
	}
}

func TestWhatEndsAReplay(t *testing.T) {
	if _, err := replay.New(config("policies: []", "policies: [{name: a, limits: 1/x}]")); len(policy.Errors(err)) != 2 {
		t.Errorf("two broken files: %v", err)
	}
	r, err := replay.New(config("policies: [{name: a, limits: 1/h}]"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	whole := strings.Repeat(line(0, "a", "GET /"), 5)
	if err := r.Run(t.Context(), replay.Log{Name: "log", Reader: strings.NewReader(whole)}); err != nil {
		t.Fatal(err)
	}
	var half bytes.Buffer
	z := gzip.NewWriter(&half)
	if err := errors.Join(func() error { _, err := z.Write([]byte(line(0, "a", "GET /") + line(1, "a", "GET /"))); return err }(), z.Close()); err != nil {
		t.Fatal(err)
	}
	half.Truncate(half.Len() - 3)
	if err := r.Run(t.Context(), replay.Log{Name: "half.gz", Reader: &half}); fmt.Sprint(err) != "half.gz: ends in the middle: it is truncated or still being written (lines read: 2)" {
		t.Errorf("half of a log: %v", err)
	}
	broken := errors.New("the disk is gone")
	nonsense := io.MultiReader(strings.NewReader("nonsense\n"), iotest.ErrReader(broken))
	if err := r.Run(t.Context(), replay.Log{Name: "log", Reader: nonsense}); !errors.Is(err, broken) {
		t.Errorf("a log that cannot be read to its end: %v", err)
	}
	if err := r.Run(t.Context(), replay.Log{Name: "log", Reader: iotest.ErrReader(broken)}); !errors.Is(err, broken) {
		t.Errorf("a log that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx, replay.Log{Name: "log", Reader: strings.NewReader(strings.Repeat(line(0, "a", "GET /"), 10_000))}); !errors.Is(err, context.Canceled) {
		t.Errorf("a replay that is interrupted: %v", err)
	}
}

// A log of which no line can be read is an error, wherever it is among the logs and
// whatever is wrong with the others.
func TestALogWithoutALine(t *testing.T) {
	r, err := replay.New(config("policies: [{name: a, limits: 9/h}]"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // its counters are in memory
	for _, c := range []struct{ text, want string }{
		{line(0, "a", "GET /") + "wrong\nwrong\n", "<nil>"}, {"", "<nil>"}, {"\n\n", "<nil>"}, {line(0, "a", "GET /"), "<nil>"},
		{"wrong\nwrong\nwrong\n", `log: none of its lines (3) is a line of an access log: line 1, "wrong", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
		{"wrong\n", `log: none of its lines (1) is a line of an access log: line 1, "wrong", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
		{"wrong\n" + line(0, "a", "GET /"), "<nil>"},
		{"\n" + strings.Repeat("é", 101) + "\nwrong\n", `log: none of its lines (2) is a line of an access log: line 2, "` + strings.Repeat("é", 100) + `...", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
		{strings.Repeat("é", 100) + "\n", `log: none of its lines (1) is a line of an access log: line 1, "` + strings.Repeat("é", 100) + `", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")"},
		{`{"when":1}`, `log: none of its lines (1) is a line of an access log: line 1, "{\"when\":1}", has no time that can be read (want ` + accesslog.Formats + "; --fields names the fields of other JSON)"},
	} {
		if err := r.Run(t.Context(), replay.Log{Name: "log", Reader: strings.NewReader(c.text)}); fmt.Sprint(err) != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}
