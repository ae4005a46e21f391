package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
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
			accesslog.Entry{Time: at, Addr: "127.0.0.1", User: "frank", Method: "GET", Target: "/apache_pb.gif?a=b", Status: 200}, nil,
		},
		"combined": {
			`2001:db8::1 - - [20/Nov/2026:13:55:36 +0000] "POST /a b HTTP/1.1" 403 - "http://x/\"y" "curl \\ \x41" "more"`,
			accesslog.Entry{Time: at, Addr: "2001:db8::1", Method: "POST", Target: "/a b", Status: 403}, map[string]string{"referer": `http://x/"y`, "User-Agent": `curl \ A`},
		},
		"a user with spaces": {
			`h - a b c [20/Nov/2026:13:55:36 +0000] "GET /" - -`, accesslog.Entry{Time: at, Addr: "h", User: "a b c", Method: "GET", Target: "/"}, nil,
		},
		"nginx": {
			`{"time_iso8601":"2026-11-20T13:55:36+00:00","remote_addr":"10.0.0.1","remote_user":"-","request_method":"GET","request_uri":"/a?b=c","status":"200","http_x_api_key":"k","http_user_agent":"-"}`,
			accesslog.Entry{Time: at, Addr: "10.0.0.1", Method: "GET", Target: "/a?b=c", Status: 200}, map[string]string{"X-Api-Key": "k", "User-Agent": ""},
		},
		"nginx's request": {
			`{"msec":1795182936,"remote_addr":"10.0.0.1","request":"PUT /x HTTP/2.0","status":201}`, accesslog.Entry{Time: at, Addr: "10.0.0.1", Method: "PUT", Target: "/x", Status: 201}, nil,
		},
		"caddy": {
			`{"level":"info","ts":1795182936.0,"request":{"remote_ip":"10.9.9.9","client_ip":"10.0.0.2","method":"GET","host":"h","uri":"/c","headers":{"x-api-key":["k"],"A":[]}},"user_id":"u","status":404}`,
			accesslog.Entry{Time: at, Addr: "10.0.0.2", User: "u", Method: "GET", Target: "/c", Status: 404}, map[string]string{"X-API-Key": "k", "X-None": ""},
		},
		"traefik": {
			`{"ClientHost":"10.0.0.3","RequestMethod":"GET","RequestPath":"/t","DownstreamStatus":200,"StartUTC":"2026-11-20T13:55:36Z","RouterName":"api@file","request_User-Agent":"curl"}`,
			accesslog.Entry{Time: at, Addr: "10.0.0.3", Method: "GET", Target: "/t", Status: 200, Route: "api@file"}, map[string]string{"user-agent": "curl"},
		},
		"a request line beside a method": {
			`{"ts":1795182936,"ip":"a","method":"GET","request":"PUT /x HTTP/1.1"}`, accesslog.Entry{Time: at, Addr: "a", Method: "PUT", Target: "/x"}, nil,
		},
		"a request line beside a path": {
			`{"ts":1795182936,"ip":"a","path":"/y","request":"PUT /x HTTP/1.1"}`, accesslog.Entry{Time: at, Addr: "a", Method: "PUT", Target: "/x"}, nil,
		},
		"a number for a user": {` {"ts":1795182936,"ip":"a","verb":"GET","path":"/","user_id":1234567890}` + "\t", accesslog.Entry{Time: at, Addr: "a", User: "1234567890", Method: "GET", Target: "/"}, nil},
		"a fraction":          {`{"ts":1795182936,"ip":"a","verb":"GET","path":"/","user_id":1.5}`, accesslog.Entry{Time: at, Addr: "a", User: "1.5", Method: "GET", Target: "/"}, nil},
		"milliseconds":        {`{"ts":1795182936000,"ip":"a","verb":"GET","path":"/"}`, accesslog.Entry{Time: at, Addr: "a", Method: "GET", Target: "/"}, nil},
		"nanoseconds":         {`{"ts":"1795182936000000000","ip":"a","verb":"GET","path":"/"}`, accesslog.Entry{Time: at, Addr: "a", Method: "GET", Target: "/"}, nil},
	} {
		got, err := accesslog.Parse(c.line, nil)
		if err != nil || !got.Time.Equal(c.want.Time) || got.Addr != c.want.Addr || got.User != c.want.User || got.Method != c.want.Method ||
			got.Target != c.want.Target || got.Status != c.want.Status || got.Route != c.want.Route {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, c.want)
		}
		for header, want := range c.header {
			if value, known := got.Header(header); !known || value != want {
				t.Errorf("%s: header %s is %q (known: %t), want %q", name, header, value, known, want)
			}
		}
		if name != "caddy" {
			if value, known := got.Header("X-None"); known {
				t.Errorf("%s: the log says of a header that it does not have that it is %q", name, value)
			}
		}
	}
}

func TestFieldsOfOnesOwn(t *testing.T) {
	e, err := accesslog.Parse(`{"when":"2026-11-20T13:55:36Z","who":{"ip":"a"},"m":"GET","u.r":"/x","ip":"b"}`,
		accesslog.Fields{"time": "when", "addr": "who.ip", "method": "m", "target": "u.r"})
	if err != nil || e.Addr != "a" || e.Target != "/x" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestLinesThatAreNone(t *testing.T) {
	const head = `127.0.0.1 - - [20/Nov/2026:06:55:36 -0700] `
	for line, want := range map[string]error{
		``: accesslog.ErrFormat, `hello`: accesslog.ErrFormat, `a b c [d] e`: accesslog.ErrTime, `{`: accesslog.ErrFormat, `{}`: accesslog.ErrTime, `{"ts":"x"}`: accesslog.ErrTime, `{"ts":1795182936}`: accesslog.ErrRequest, `{"ts":-1}`: accesslog.ErrTime,
		head + `"\x16\x03\x01" 400 0`: accesslog.ErrRequest, head + `"-" 408 0`: accesslog.ErrRequest, `{"ts":1,"method":"G(T","path":"/"}`: accesslog.ErrRequest, `a b c [d`: accesslog.ErrFormat, `a b [20/Nov/2026:06:55:36 -0700] "GET / HTTP/1.1" 200 1`: accesslog.ErrFormat,
		`a [20/Nov/2026:06:55:36 -0700] "GET / HTTP/1.1" 200 1`: accesslog.ErrFormat, head + `200 5`: accesslog.ErrFormat, head + `200 5 "GET / HTTP/1.1"`: accesslog.ErrFormat,
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
	long := strings.Repeat("x", 3<<20)
	text := "a\r\n\nb\n" + long + "\nlast"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(text[:10]))
	_ = z.Close()
	z.Reset(&zipped) // a second member, as rotated logs have them when they are joined
	_, _ = z.Write([]byte(text[10:]))
	_ = z.Close()
	for name, data := range map[string][]byte{"plain": []byte(text), "gzip": zipped.Bytes()} {
		lines, numbers := read(t, data)
		if len(lines) != 4 || lines[0] != "a" || lines[1] != "b" || len(lines[2]) != accesslog.MaxLine || lines[3] != "last" || numbers[1] != 3 || numbers[3] != 5 {
			t.Errorf("%s: %d lines with numbers %v", name, len(lines), numbers)
		}
	}
	stop := errors.New("stop")
	if err := accesslog.Lines(strings.NewReader("a\nb"), func(int, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the caller: %v", err)
	}
	if err := accesslog.Lines(bytes.NewReader(zipped.Bytes()[:20]), func(int, []byte) error { return nil }); err == nil {
		t.Error("half of a compressed log is no error")
	}
	if err := accesslog.Lines(strings.NewReader(""), func(int, []byte) error { return stop }); err != nil {
		t.Error(err)
	}
}

// Lines longer than the buffer have nothing of one another.
func TestLongLinesAreReadApart(t *testing.T) {
	first, second := strings.Repeat("x", 600<<10), strings.Repeat("y", 300<<10)
	lines, _ := read(t, []byte(first+"\n"+second+"\nlast\n"))
	if len(lines) != 3 || lines[0] != first || lines[1] != second || lines[2] != "last" {
		t.Fatalf("%d lines, want 3 as they were written", len(lines))
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
