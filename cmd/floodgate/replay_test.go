package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

// A replay of no line is an error that names the formats.
func TestALogThatIsNoAccessLog(t *testing.T) {
	good, real, empty := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "access.log", accessLog(1)+"wrong\n"), file(t, "empty.log", "\n\r\n")
	for name, c := range map[string]struct{ text, want string }{
		"prose.log": {"hello \x1b[2Jworld\nsecond\n", `none of its lines (2) is a line of an access log: line 1, "hello \x1b[2Jworld", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")\n"},
		"late.log":  {"\n\n" + strings.Repeat("é", 200) + "\n", `none of its lines (1) is a line of an access log: line 3, "` + strings.Repeat("é", 100) + `", is neither in the common or combined format nor JSON (want ` + accesslog.Formats + ")\n"},
		"json.log":  {`{"when":1}` + "\n", `none of its lines (1) is a line of an access log: line 1, "{\"when\":1}", has no time that can be read (want ` + accesslog.Formats + "; --fields names the fields of other JSON)\n"},
		"empty.log": {"\n\r\n", "no lines (want a log in " + accesslog.Formats + ")\n"},
		"none.log":  {"", "no lines (want a log in " + accesslog.Formats + ")\n"},
	} {
		path := file(t, name, c.text)
		if out, errs := expect(t, exitFailed, "", "replay", good, path); errs != "floodgate: "+path+": "+c.want || out != "" {
			t.Errorf("%s: says %q %q\nwant %s", name, errs, out, c.want)
		}
		if strings.HasPrefix(c.want, "none") {
			expect(t, exitFailed, "", "replay", good, real, path)
		}
		expect(t, exitFailed, "", "replay", good, empty, path)
	}
	// A log that was rotated a moment ago is empty.
	if out, _ := expect(t, exitFine, "", "replay", good, real, empty); !strings.Contains(out, "2 lines, 1 request ") {
		t.Errorf("with an empty log: %s", out)
	}
}

func accessLog(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "10.0.0.%d - - [%s] \"GET /items/%d HTTP/1.1\" 200 1 \"-\" \"agent\"\n", i%4, time.Unix(1_795_000_000+int64(i/10), 0).UTC().Format("02/Jan/2006:15:04:05 -0700"), i)
	}
	return b.String()
}

// A terminal shows four times a second how much has been read.
func TestTheProgressOfAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &progress{file: iotest.OneByteReader(strings.NewReader("0123456789")), name: "log", size: 10, out: &out}
		for range 10 {
			_, _ = p.Read(make([]byte, 9))
			time.Sleep(100 * time.Millisecond)
		}
		if want := "\rlog: 10 %\rlog: 40 %\rlog: 70 %\rlog: 100 %"; out.String() != want {
			t.Errorf("shows %q, want %q", &out, want)
		}
	})
}

func TestReplay(t *testing.T) {
	one := file(t, "one.yaml", "policies: [{name: all, limits: 3/s fixed_window}]")
	log := file(t, "access.log", accessLog(100))
	out, _ := expect(t, 0, "", "replay", one, log)
	for _, want := range []string{"100 lines, 100 requests", "one.yaml: 30 allowed, 70 denied (70.00 %)", "GET /items/{id}"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "alone, with quotas") {
		t.Error("it sweeps without being asked to")
	}
	t.Setenv("CLICOLOR_FORCE", "1")
	if _, said := expect(t, 0, "", "replay", one, log); said != "\r"+log+": 100 %\r\x1b[K" {
		t.Errorf("on a terminal, it says %q", said)
	}
	no := file(t, "no.log", "hello\n")
	if _, said := expect(t, exitFailed, "", "replay", one, no); !strings.HasPrefix(said, "\r"+no+": 100 %\r\x1b[Kfloodgate: "+no+": none of its lines") {
		t.Errorf("on a terminal, it says %q", said)
	}
	t.Setenv("CLICOLOR_FORCE", "")
	if out, _ := expect(t, 0, "", "replay", one, log, "--sweep"); !strings.Contains(out, "× 10 (30)                      0       0.00 %") {
		t.Errorf("the sweep:\n%s", out)
	}

	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(accessLog(100)))
	_ = z.Close()
	out, _ = expect(t, 0, zipped.String(), "replay", one, "-", log, "--format", "json")
	var r replay.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Requests != 200 || r.OutOfOrder != 90 || strings.Join(r.Logs, ",") != "standard input,"+log {
		t.Errorf("%v, %+v", err, r)
	}

	if out, _ := expect(t, 0, "", "replay", one, log, "--format", "html", "--sweep"); strings.Count(out, "<svg") != 2 || !strings.HasSuffix(out, "</html>\n") {
		t.Errorf("the page\n%s", out)
	}
	mine := file(t, "mine.log", `{"when":1795000000,"who":"a","what":"GET","where":"/"}`)
	if out, _ := expect(t, 0, "", "replay", one, mine, "--fields", "time=when,addr=who,method=what,target=where"); !strings.Contains(out, "1 line, 1 request from") {
		t.Errorf("fields of one's own: %s", out)
	}

	expect(t, exitFailed, "hello\n", "replay", one, "-")
	const honest = "  honest clients (at most 1 request in each minute) that were denied: 0, "
	if out, _ := expect(t, exitFine, "", "replay", one, log, "--honest", "1"); !strings.Contains(out, honest) {
		t.Errorf("lacks %q:\n%s", honest, out)
	}
	for _, args := range [][]string{{one, file(t, "access.log.xz", "\xfd7zXZ\x00...")}, {file(t, "bad.yaml", "a: 1"), log}} {
		if out, errs := expect(t, exitFailed, "", append([]string{"replay"}, args...)...); errs == "" || out != "" {
			t.Errorf("%q: %q, %q", args, out, errs)
		}
	}
}
