package accesslog_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

// A status has at most three digits, and a minus is none.
func TestTheBoundsOfAStatus(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "-": 0, "100": 100, "999": 999, "1000": -1, "-1": -1, "1e2": -1} {
		e, err := accesslog.Parse(`h - - [20/Nov/2026:13:55:36 +0000] "GET / HTTP/1.1" `+text+` 5`, nil)
		if want < 0 && !errors.Is(err, accesslog.ErrFormat) || want >= 0 && (err != nil || e.Status != want) {
			t.Errorf("%q: %d, %v, want %d", text, e.Status, err, want)
		}
	}
}

// A number is a time in seconds, milliseconds, microseconds or nanoseconds, told
// apart by its size.
func TestTheUnitsOfATime(t *testing.T) {
	for number, want := range map[string]time.Time{
		"0":                   time.Unix(0, 0),
		"0.5":                 time.Unix(0, 500_000_000),
		"1795182936.25":       time.Unix(1795182936, 250_000_000),
		"99999999999":         time.Unix(99999999999, 0), // the last second
		"100000000000":        time.UnixMilli(100000000000),
		"1795182936250":       time.UnixMilli(1795182936250),
		"99999999999999":      time.UnixMilli(99999999999999),
		"100000000000000":     time.UnixMicro(100000000000000),
		"1795182936250000":    time.UnixMicro(1795182936250000),
		"99999999999999984":   time.UnixMicro(99999999999999984),
		"100000000000000000":  time.Unix(100000000, 0),
		"1795182936250000000": time.UnixMicro(1795182936250000),
		"4611686018427387904": time.Unix(4611686018, 427387904), // the last one
	} {
		for _, text := range []string{number, `"` + number + `"`} {
			e, err := accesslog.Parse(`{"ts":`+text+`,"method":"GET","path":"/"}`, nil)
			if err != nil || want.Sub(e.Time).Abs() > 20*time.Microsecond { // what a float64 can tell
				t.Errorf("%s: %v, %v, want %v", text, e.Time.UTC(), err, want.UTC())
			}
		}
	}
	for _, number := range []string{"-0.001", "-1", "4611686018427388928", "1e300", `"NaN"`, `"Inf"`, `"-Inf"`, "null", "true", "[]", `""`} {
		if e, err := accesslog.Parse(`{"ts":`+number+`,"method":"GET","path":"/"}`, nil); !errors.Is(err, accesslog.ErrTime) {
			t.Errorf("%s: %v, %v", number, e.Time, err)
		}
	}
	for text, want := range map[string]string{
		"2026-11-20T13:55:36.25Z": "13:55:36.25", "2026-11-20T15:55:36+02:00": "13:55:36", "20/Nov/2026:13:55:36 +0000": "13:55:36", "2026-11-20T13:55:36.5+0000": "13:55:36.5", "2026-11-20 13:55:36Z": "13:55:36",
	} {
		if e, err := accesslog.Parse(`{"ts":"`+text+`","method":"GET","path":"/"}`, nil); err != nil || e.Time.UTC().Format("15:04:05.99") != want {
			t.Errorf("%s: %v, %v, want %s", text, e.Time.UTC(), err, want)
		}
	}
}

// What servers escape in quotes is undone; half of an escape stays as it is.
func TestEscapesInQuotes(t *testing.T) {
	for agent, want := range map[string]string{
		`a\x41b`: "aAb", `a\x4`: `a\x4`, `a\x`: `a\x`, `\x41`: "A", `\x4g`: `\x4g`, `\x4G1`: `\x4G1`, `\xff`: "\xff", `\t\n\r`: "\t\n\r", `\"\\`: `"\`, `\q`: "q", `a\\x41`: `a\x41`, `\x41\x42`: "AB",
	} {
		e, err := accesslog.Parse(`h - - [20/Nov/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "`+agent+`"`, nil)
		if got, _ := e.Header("User-Agent"); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", agent, got, err, want)
		}
	}
	for line, agent := range map[string]string{
		`"GET / HTTP/1.1" 200 5 "r" "open`: "", `"GET / HTTP/1.1" 200 5 "r`: "", `"GET / HTTP/1.1" 200 5`: "", `"GET / HTTP/1.1" 200 5 "-" "-"`: "", `"GET / HTTP/1.1" 200`: "", `"GET / HTTP/1.1"  200 5 "r"  "a"`: "a", `"GET / HTTP/1.1" 200 5 r "a"`: "",
	} {
		e, err := accesslog.Parse(`h - - [20/Nov/2026:13:55:36 +0000] `+line, nil)
		if got, _ := e.Header("User-Agent"); err != nil || got != agent {
			t.Errorf("%s: the agent is %q (%v), want %q", line, got, err, agent)
		}
	}
}

// The method has only characters that a method can have, and the target is what is
// between it and the version.
func TestRequestLines(t *testing.T) {
	for request, want := range map[string]string{
		"GET / HTTP/1.1": "GET|/", "GET /": "GET|/", "GET /a b HTTP/1.0": "GET|/a b", "GET /x HTTP/1.1 HTTP/2.0": "GET|/x HTTP/1.1", "PRI * HTTP/2.0": "PRI|*", "M-SEARCH * HTTP/1.1": "M-SEARCH|*",
		"get / HTTP/1.1": "get|/", "a~b! / HTTP/1.1": "a~b!|/", "GET  HTTP/1.1": "", "GET": "", " / HTTP/1.1": "", "G(T / HTTP/1.1": "", "G\x01T / HTTP/1.1": "", "G\x7fT / HTTP/1.1": "", "Gé / HTTP/1.1": "", "GET HTTP/1.1": "GET|HTTP/1.1",
	} {
		e, err := accesslog.Parse(`h - - [20/Nov/2026:13:55:36 +0000] "`+request+`" 200 5`, nil)
		if got := e.Method + "|" + e.Target; want == "" && !errors.Is(err, accesslog.ErrRequest) || want != "" && (err != nil || got != want) {
			t.Errorf("%q: %s, %v, want %s", request, got, err, want)
		}
	}
}

// A line of just the longest length is whole, and a longer one is cut to it.
func TestTheLongestLine(t *testing.T) {
	for _, size := range []int{256<<10 - 2, 256<<10 - 1, 256 << 10, 256<<10 + 1, accesslog.MaxLine - 1, accesslog.MaxLine, accesslog.MaxLine + 1, 3 * accesslog.MaxLine} {
		for _, end := range []string{"\n", "\r\n", ""} {
			lines, numbers := read(t, []byte("a\n"+strings.Repeat("x", size)+end))
			if len(lines) != 2 || numbers[1] != 2 || len(lines[1]) != min(size, accesslog.MaxLine) || strings.Trim(lines[1], "x") != "" {
				t.Errorf("%d bytes and %q: %d lines, the second of %d bytes", size, end, len(lines), len(lines[len(lines)-1]))
			}
		}
	}
}

// What is nearly a byte order mark, a compressed log or a binary file.
func TestBeginnings(t *testing.T) {
	text := "10.0.0.1 - - [20/Nov/2026:13:55:36 +0000]"
	for _, head := range []string{"", "\xef\xbb", "\x1f", "BZ", "PK", "7z", "\xef\xbb\xbf"} {
		lines, _ := read(t, []byte(head+text))
		if want := strings.TrimPrefix(head, "\xef\xbb\xbf") + text; len(lines) != 1 || lines[0] != want {
			t.Errorf("%q: %q", head, lines)
		}
	}
	for at, taken := range map[int]bool{0: false, 100: false, 511: false, 512: true} {
		binary := []byte(strings.Repeat("x", 600))
		binary[at] = 0
		if err := accesslog.Lines(strings.NewReader(string(binary)), func(int, []byte) error { return nil }); (err == nil) != taken {
			t.Errorf("a zero byte at %d: %v", at, err)
		}
	}
}

func TestHeadersInJSON(t *testing.T) {
	for line, want := range map[string]string{
		`{"request":{"headers":{"X-A":["1","2"],"X-B":"b","X-C":[],"X-D":[5]}}}`: "X-A=1,true X-B=b,true X-C=,false X-D=,false X-E=,true",
		`{"http_x_a":"1","request_X-B":"b","X-C":"-","http_x_d":5}`:              "X-A=1,true X-B=b,true X-C=,true X-D=,true X-E=,false",
	} {
		e, err := accesslog.Parse(strings.Replace(line, "{", `{"ts":1,"method":"GET","path":"/",`, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"x-a", "x-b", "x-c", "x-d", "x-e"} {
			value, known := e.Header(name)
			got = append(got, fmt.Sprintf("%s=%s,%t", strings.ToUpper(name), value, known))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
}

// A line may have several of the usual fields. The first one counts: a path without its query is
// not the target of a line that has both.
func TestTheFirstOfTheUsualFieldsCounts(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want accesslog.Entry
	}{
		"nginx":   {`{"uri":"/index.php","request_uri":"/shop?id=5","method":"x","request_method":"GET","ip":"b","remote_addr":"a"}`, accesslog.Entry{Addr: "a", Method: "GET", Target: "/shop?id=5"}},
		"traefik": {`{"ClientAddr":"10.0.0.1:5","ClientHost":"10.0.0.1","OriginStatus":200,"DownstreamStatus":429,"RequestMethod":"GET","RequestPath":"/"}`, accesslog.Entry{Addr: "10.0.0.1", Method: "GET", Target: "/", Status: 429}},
	} {
		e, err := accesslog.Parse(strings.Replace(c.line, "{", `{"ts":1,`, 1), nil)
		if err != nil || e.Addr != c.want.Addr || e.Method != c.want.Method || e.Target != c.want.Target || e.Status != c.want.Status {
			t.Errorf("%s: %+v, %v, want %+v", name, e, err, c.want)
		}
	}
}

// A field that is named takes the place of the usual ones, also in a line that does not have it.
func TestANamedFieldThatALineLacks(t *testing.T) {
	e, err := accesslog.Parse(`{"ts":1,"method":"GET","path":"/","remote_addr":"10.0.0.1"}`, accesslog.Fields{"addr": "client.ip"})
	if err != nil || e.Addr != "" {
		t.Errorf("the address is %q, %v, want none", e.Addr, err)
	}
}

// failsOnce is a reader that returns an error once, and then the end.
type failsOnce struct {
	text io.Reader
	err  error
}

func (f *failsOnce) Read(p []byte) (n int, err error) {
	if n, err = f.text.Read(p); errors.Is(err, io.EOF) && f.err != nil {
		err, f.err = f.err, nil
	}
	return n, err
}

// An error of the reader is not lost, wherever it comes, and what came before it is
// read.
func TestAReaderThatFails(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, text := range []string{"", "a\n", "a\nb", strings.Repeat("a\n", 256), strings.Repeat("a\n", 500_000), string(gzipped(t, "a\nb\n"))[:20]} {
		lines := 0
		err := accesslog.Lines(&failsOnce{strings.NewReader(text), broken}, func(int, []byte) error { lines++; return nil })
		if !errors.Is(err, broken) || lines != strings.Count(text, "\n") && text[0] == 'a' {
			t.Errorf("%.10q: %d lines, %v", text, lines, err)
		}
	}
}
