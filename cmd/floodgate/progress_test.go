package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

// stepping is a clock that goes on by step with each reading.
func stepping(step time.Duration) func() time.Time {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	return func() time.Time {
		at = at.Add(step)
		return at
	}
}

// A replay of two logs reports its progress after each batch of 512 lines: the share
// is that of the log that is being read, and nobody knows the size of the standard
// input.
func TestProgressOfAReplay(t *testing.T) {
	good, log := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "access.log", accessLog(600))
	for _, c := range []struct {
		step  time.Duration
		quiet bool
		logs  []string
		want  string
	}{
		{reportEvery, false, []string{log}, "512 lines, 100 % of the log, 256 lines a second\n600 lines, 100 % of the log, 150 lines a second\n"},
		// The first and the third reading of the clock are too early.
		{reportEvery / 2, false, []string{log, log}, "600 lines, 100 % of the log, 300 lines a second\n1200 lines, 100 % of the log, 300 lines a second\n"},
		{reportEvery, false, []string{log, "-"}, "512 lines, 100 % of the log, 256 lines a second\n600 lines, 100 % of the log, 150 lines a second\n1000 lines, 167 lines a second\n"},
		{reportEvery, true, []string{log}, ""},
	} {
		var out, errs bytes.Buffer
		o := &replaying{
			format: "text", honest: 60, top: 1, maxKeys: 1, outliers: "leave-out", tolerance: time.Minute, quiet: c.quiet,
			now: stepping(c.step), in: strings.NewReader(accessLog(400)), out: &out, diagnostics: &errs,
		}
		if err := o.replay(t.Context(), []string{good}, c.logs); err != nil {
			t.Fatal(err)
		}
		if errs.String() != c.want {
			t.Errorf("%q reports\n%swant\n%s", c.logs, &errs, c.want)
		}
	}
}

// Of a log that is read in parts, the share is what has been read of it.
func TestProgressWithinALog(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, stepping(reportEvery))
	p.size = 200
	r := p.reading(strings.NewReader(strings.Repeat("x", 200)))
	for range 4 {
		if _, err := r.Read(make([]byte, 50)); err != nil {
			t.Fatal(err)
		}
	}
	p.reading(nil)
	p.read.Store(50)
	p.lines(1000)
	if want := "1000 lines, 25 % of the log, 500 lines a second\n"; b.String() != want {
		t.Errorf("reports %q, want %q", b.String(), want)
	}
}

// The least value of each number is a value.
func TestTheLeastNumbers(t *testing.T) {
	good, log := file(t, "good.yaml", "policies: [{name: a, key: ip, limits: 1/h}]"), file(t, "access.log", accessLog(100))
	out, _ := expect(t, exitFine, "", "replay", good, log, "--top", "1", "--honest", "1", "--max-keys", "1")
	if n := strings.Count(out, "10.0.0."); n == 0 || n > 2 { // one key and one client
		t.Errorf("--top 1 lists %d addresses:\n%s", n, out)
	}
}

// A replay of no line is an error that names the formats.
func TestALogThatIsNoAccessLog(t *testing.T) {
	good, real, empty := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "access.log", accessLog(1)), file(t, "empty.log", "\n\r\n")
	for name, c := range map[string]struct{ text, want string }{
		"prose.log": {"hello \x1b[2Jworld\nsecond\n", `none of its lines (2) is a line of an access log: line 1, "hello \x1b[2Jworld", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")\n"},
		"late.log":  {"\n\n" + strings.Repeat("é", 200) + "\n", `none of its lines (1) is a line of an access log: line 3, "` + strings.Repeat("é", 100) + `...", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")\n"},
		"json.log":  {`{"when":1}` + "\n", `none of its lines (1) is a line of an access log: line 1, "{\"when\":1}", has no time that can be read (want ` + accesslog.Formats + "; --fields names the fields of other JSON)\n"},
		"empty.log": {"\n\r\n", "no lines (want a log in " + accesslog.Formats + ")\n"},
		"none.log":  {"", "no lines (want a log in " + accesslog.Formats + ")\n"},
	} {
		path := file(t, name, c.text)
		if out, errs := expect(t, exitFailed, "", "replay", good, path); errs != "floodgate: "+path+": "+c.want || out != "" {
			t.Errorf("%s: says %q %q\nwant %s", name, errs, out, c.want)
		}
	}
	// A log that was rotated a moment ago is empty.
	if out, _ := expect(t, exitFine, "", "replay", good, real, empty); !strings.Contains(out, "1 line, 1 request ") {
		t.Errorf("with an empty log: %s", out)
	}
}
