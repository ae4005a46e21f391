package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

func TestParse(t *testing.T) {
	at := time.Date(2026, 11, 20, 13, 55, 36, 0, time.UTC)
	for name, c := range map[string]struct {
		line   string
		want   accesslog.Entry
		header map[string]string
	}{
		"common": {
			`127.0.0.1 - frank [20/Nov/2026:06:55:36 -0700] "GET /apache_pb.gif?a=b HTTP/1.0" 200 2326`,
			accesslog.Entry{Time: at, Addr: "127.0.0.1", User: "frank", Method: "GET", Target: "/apache_pb.gif?a=b"}, nil,
		},
		"combined": {
			`2001:db8::1 - - [20/Nov/2026:13:55:36 +0000] "POST /a b HTTP/1.1" 403 - "http://x/\"y" "curl \\ \x41" "more"`,
			accesslog.Entry{Time: at, Addr: "2001:db8::1", Method: "POST", Target: "/a b"}, map[string]string{"referer": `http://x/"y`, "User-Agent": `curl \ A`},
		},
		"a user with spaces": {
			`h - a b c [20/Nov/2026:13:55:36 +0000] "GET /" - -`, accesslog.Entry{Time: at, Addr: "h", User: "a b c", Method: "GET", Target: "/"}, nil,
		},
		"nginx": {
			`{"time_iso8601":"2026-11-20T13:55:36+00:00","remote_addr":"10.0.0.1","remote_user":"-","request_method":"GET","request_uri":"/a?b=c","status":"200","http_x_api_key":"k","http_user_agent":"-"}`,
			accesslog.Entry{Time: at, Addr: "10.0.0.1", Method: "GET", Target: "/a?b=c"}, map[string]string{"X-Api-Key": "k", "User-Agent": ""},
		},
		"nginx's request": {
			`{"msec":1795182936,"remote_addr":"10.0.0.1","request":"PUT /x HTTP/2.0","status":201}`, accesslog.Entry{Time: at, Addr: "10.0.0.1", Method: "PUT", Target: "/x"}, nil,
		},
		"caddy": {
			`{"level":"info","ts":1795182936.0,"request":{"remote_ip":"10.9.9.9","client_ip":"10.0.0.2","method":"GET","host":"h","uri":"/c","headers":{"x-api-key":["k"],"A":[]}},"user_id":"u","status":404}`,
			accesslog.Entry{Time: at, Addr: "10.0.0.2", User: "u", Method: "GET", Target: "/c"}, map[string]string{"X-API-Key": "k", "X-None": ""},
		},
		"traefik": {
			`{"ClientHost":"10.0.0.3","RequestMethod":"GET","RequestPath":"/t","DownstreamStatus":200,"StartUTC":"2026-11-20T13:55:36Z","RouterName":"api@file","request_User-Agent":"curl"}`,
			accesslog.Entry{Time: at, Addr: "10.0.0.3", Method: "GET", Target: "/t", Route: "api@file"}, map[string]string{"user-agent": "curl"},
		},
		"a request line beside a method": {
			`{"ts":1795182936,"ip":"a","method":"GET","request":"PUT /x HTTP/1.1"}`, accesslog.Entry{Time: at, Addr: "a", Method: "PUT", Target: "/x"}, nil,
		},
		"a request line beside a path": {
			`{"ts":1795182936,"ip":"a","path":"/y","request":"PUT /x HTTP/1.1"}`, accesslog.Entry{Time: at, Addr: "a", Method: "PUT", Target: "/x"}, nil,
		},
		"a file's beginning":  {"\ufeff" + `{"ts":1795182936,"ip":"a","verb":"GET","path":"/"}`, accesslog.Entry{Time: at, Addr: "a", Method: "GET", Target: "/"}, nil},
		"a number for a user": {` {"ts":1795182936,"ip":"a","verb":"GET","path":"/","user_id":1234567890}` + "\t", accesslog.Entry{Time: at, Addr: "a", User: "1234567890", Method: "GET", Target: "/"}, nil},
		"a fraction":          {`{"ts":1795182936,"ip":"a","verb":"GET","path":"/","user_id":1.5}`, accesslog.Entry{Time: at, Addr: "a", User: "1.5", Method: "GET", Target: "/"}, nil},
		"milliseconds":        {`{"ts":1795182936000,"ip":"a","verb":"GET","path":"/"}`, accesslog.Entry{Time: at, Addr: "a", Method: "GET", Target: "/"}, nil},
		"nanoseconds":         {`{"ts":"1795182936000000000","ip":"a","verb":"GET","path":"/"}`, accesslog.Entry{Time: at, Addr: "a", Method: "GET", Target: "/"}, nil},
	} {
		got, err := accesslog.Parse(c.line, nil)
		if err != nil || !got.Time.Equal(c.want.Time) || got.Addr != c.want.Addr || got.User != c.want.User || got.Method != c.want.Method ||
			got.Target != c.want.Target || got.Route != c.want.Route {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, c.want)
		}
		for header, want := range c.header {
			if value, known := got.Header(header); !known || value != want {
				t.Errorf("%s: header %s is %q (known: %t), want %q", name, header, value, known, want)
			}
		}
		if _, known := got.Header("Referer"); known != (c.header["referer"] != "" || name == "caddy") {
			t.Errorf("%s: the referer is known: %t", name, known)
		}
		if name != "caddy" {
			if value, known := got.Header("X-None"); known {
				t.Errorf("%s: the log says of a header that it does not have that it is %q", name, value)
			}
		}
	}
}

// A field that is named takes the place of the usual ones, also in a line that does not have it.
func TestFieldsOfOnesOwn(t *testing.T) {
	e, err := accesslog.Parse(`{"when":"2026-11-20T13:55:36Z","who":{"ip":"a"},"m":"GET","u.r":"/x","ip":"b","user_id":"c","route":"r"}`,
		accesslog.Fields{"time": "when", "addr": "who.ip", "method": "m", "target": "u.r", "user": "m", "route": "who.r"})
	if got := strings.Join([]string{e.Addr, e.Method, e.Target, e.User, e.Route}, " "); err != nil || got != "a GET /x GET " || e.Time.Second() != 36 {
		t.Errorf("%s, %v", got, err)
	}
}

// Each usual field is read. If a line has several, the first one counts: a path without its query is not the target of
// a line that has both.
func TestTheUsualFields(t *testing.T) {
	for field, names := range map[string]string{
		"time":   "time ts @timestamp timestamp time_iso8601 time_local msec StartUTC StartLocal start_time",
		"addr":   "remote_addr request.client_ip request.remote_ip ClientHost ClientAddr client_ip remote_ip clientip ip",
		"user":   "remote_user user_id ClientUsername user",
		"method": "request_method request.method RequestMethod method verb",
		"target": "request_uri request.uri RequestPath uri url path",
		"route":  "route RouterName",
	} {
		all := strings.Fields(names)
		for i, name := range all {
			line := fmt.Sprintf(`{"my_time":5,"my_method":"GET","my_target":"/",%q:"1700000000"`, name)
			for _, later := range all[i+1:] {
				line += fmt.Sprintf(`,%q:"9"`, later)
			}
			fields := accesslog.Fields{"time": "my_time", "method": "my_method", "target": "my_target"}
			delete(fields, field)
			e, err := accesslog.Parse(line+"}", fields)
			got := map[string]string{"time": fmt.Sprint(e.Time.Unix()), "addr": e.Addr, "user": e.User, "method": e.Method, "target": e.Target, "route": e.Route}[field]
			if err != nil || got != "1700000000" {
				t.Errorf("%s: %s, %v", line, got, err)
			}
		}
	}
}

func TestLinesThatAreNone(t *testing.T) {
	const head = `127.0.0.1 - - [20/Nov/2026:06:55:36 -0700] `
	for line, want := range map[string]error{
		``: accesslog.ErrFormat, `hello`: accesslog.ErrFormat, `a b c [d] e`: accesslog.ErrTime, `{`: accesslog.ErrFormat, `{}`: accesslog.ErrTime, `{"ts":"x"}`: accesslog.ErrTime, `{"ts":1795182936}`: accesslog.ErrRequest, `{"ts":-1}`: accesslog.ErrTime,
		head + `"\x16\x03\x01" 400 0`: accesslog.ErrRequest, head + `"-" 408 0`: accesslog.ErrRequest, `{"ts":1,"method":"G(T","path":"/"}`: accesslog.ErrRequest, `a b c [d`: accesslog.ErrFormat, `a b [20/Nov/2026:06:55:36 -0700] "GET / HTTP/1.1" 200 1`: accesslog.ErrFormat,
		`a [20/Nov/2026:06:55:36 -0700] "GET / HTTP/1.1" 200 1`: accesslog.ErrFormat, head + `200 5`: accesslog.ErrFormat, head + `GET / HTTP/1.1" 200 5`: accesslog.ErrFormat, head + `200 5 "GET / HTTP/1.1"`: accesslog.ErrFormat,
		head + `"GET / HTTP/1.1`: accesslog.ErrFormat, head + `"GET / HTTP/1.1" abc 0`: accesslog.ErrFormat,
		head + `"GET  HTTP/1.1" 200 0`: accesslog.ErrRequest, head + `"<b> / HTTP/1.1" 200 0`: accesslog.ErrRequest, `{"ts":1,"request":5}`: accesslog.ErrRequest, `[1]`: accesslog.ErrFormat,
	} {
		if e, err := accesslog.Parse(line, nil); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v, want %v", line, e, err, want)
		}
	}
}

func read(t *testing.T, text []byte) (lines []string, numbers []int) {
	t.Helper()
	err := accesslog.Lines(iotest.HalfReader(bytes.NewReader(text)), func(number int, line []byte) error {
		lines, numbers = append(lines, string(line)), append(numbers, number)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, numbers
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", accesslog.MaxLine)
	text := "a\r\n\nb\n" + long + "\r\nlast"
	joined := append(gzipped(t, text[:10]), gzipped(t, text[10:])...) // as rotated logs are joined
	for name, data := range map[string][]byte{"plain": []byte(text), "gzip": joined} {
		lines, numbers := read(t, data)
		if !slices.Equal(lines, []string{"a", "b", long, "last"}) || !slices.Equal(numbers, []int{1, 3, 4, 5}) {
			t.Errorf("%s: %d lines with numbers %v", name, len(lines), numbers)
		}
	}
	if lines, _ := read(t, nil); lines != nil {
		t.Errorf("of nothing: %q", lines)
	}
}

// Lines returns the error of its caller, of the reader and of a log that is none.
func TestLinesThatCannotBeRead(t *testing.T) {
	stop := errors.New("stop")
	if err := accesslog.Lines(strings.NewReader("a\nb"), func(int, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the caller: %v", err)
	}
	for name, c := range map[string]struct {
		log  io.Reader
		want string
	}{
		"half of a compressed log":  {bytes.NewReader(gzipped(t, strings.Repeat("a\n", 999))[:20]), "ends in the middle: "},
		"the head of one":           {bytes.NewReader(gzipped(t, "a\n")[:5]), "unexpected EOF"},
		"a wrong checksum":          {bytes.NewReader(append(gzipped(t, "a\nb\n")[:20], "12345678"...)), "gzip: "},
		"a long line":               {strings.NewReader("a\n" + strings.Repeat("x", accesslog.MaxLine+3)), "line 2 has more than 1048576 bytes"},
		"a reader that fails":       {io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(stop)), "stop"},
		"a reader that fails first": {iotest.ErrReader(stop), "stop"},
	} {
		if err := accesslog.Lines(c.log, func(int, []byte) error { return nil }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		`127.0.0.1 - frank [20/Nov/2026:06:55:36 -0700] "GET /a?b HTTP/1.0" 200 2326 "r\"" "u\x41"`,
		`{"ts":1795182936.5,"request":{"remote_ip":"a","method":"GET","uri":"/","headers":{"A":["b"]}},"status":200}`, `{"time":"x","request":"GET / HTTP/1.1"}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := accesslog.Parse(line, nil)
		if err == nil && (e.Method == "" || e.Target == "" || e.Time.IsZero() && !strings.Contains(line, "0001")) {
			t.Errorf("%q: %+v", line, e)
		}
		e.Header("X-Api-Key")
		e.Header("User-Agent")
	})
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A number is a time in seconds, milliseconds, microseconds or nanoseconds, told apart by its size.
func TestTheUnitsOfATime(t *testing.T) {
	for number, want := range map[string]time.Time{
		"0":                   time.Unix(0, 0),
		"1795182936.25":       time.Unix(1795182936, 250_000_000),
		"99999999999":         time.Unix(99999999999, 0), // the last second
		"100000000000":        time.UnixMilli(100000000000),
		"100000000000000":     time.UnixMicro(100000000000000),
		"100000000000000000":  time.Unix(100000000, 0),
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
		`a\x41b`: "aAb", `a\x4`: `a\x4`, `a\x`: `a\x`, `\x41`: "A", `\x4g`: `\x4g`, `\x4G1`: `\x4G1`, `\xff`: "\xff", `\t\n\r`: "\t\n\r", `\"\\`: `"\`, `\q`: `\q`, `a\\x41`: `a\x41`, `\x41\x42`: "AB",
	} {
		e, err := accesslog.Parse(`h - - [20/Nov/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "`+agent+`"`, nil)
		got, _ := e.Header("User-Agent")
		if _, found := e.Header("Referer"); err != nil || got != want || found { // it is "-", which says that there is none
			t.Errorf("%s is %q (%v), want %q; a referer: %v", agent, got, err, want, found)
		}
	}
	for line, agent := range map[string]string{
		`"GET / HTTP/1.1" 200 5 "r" "open`: "", `"GET / HTTP/1.1" 200 5 "r`: "", `"GET / HTTP/1.1" 200 5`: "", `"GET / HTTP/1.1" 200 5 "-" "-"`: "", `"GET / HTTP/1.1" 200`: "",
		`"GET / HTTP/1.1"  200 5 "r"  "a"`: "a", `"GET / HTTP/1.1" 200 5 r "a"`: "", `"GET /\q HTTP/1.1" 200 5 "-" "a"`: "a",
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
