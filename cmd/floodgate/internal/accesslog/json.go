package accesslog

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// paths are the places of each field: those of nginx, Caddy and Traefik, and other common
// names. The first place that a line has counts.
var paths = map[string][]string{
	"time":   {"time", "ts", "@timestamp", "timestamp", "time_iso8601", "time_local", "msec", "StartUTC", "StartLocal", "start_time"},
	"addr":   {"remote_addr", "request.client_ip", "request.remote_ip", "ClientHost", "ClientAddr", "client_ip", "remote_ip", "clientip", "ip"},
	"user":   {"remote_user", "user_id", "ClientUsername", "user"},
	"method": {"request_method", "request.method", "RequestMethod", "method", "verb"},
	"target": {"request_uri", "request.uri", "RequestPath", "uri", "url", "path"},
	"route":  {"route", "RouterName"},
}

// parseJSON reads a line of JSON.
func parseJSON(line string, f Fields) (e Entry, err error) {
	if err := json.Unmarshal([]byte(line), &e.doc); err != nil {
		return e, ErrFormat
	}
	read := func(name string) any {
		if path, given := f[name]; given {
			return e.at(path)
		}
		for _, path := range paths[name] {
			if v := e.at(path); v != nil {
				return v
			}
		}
		return nil
	}
	text := func(name string) string {
		switch v := read(name).(type) {
		case string:
			return dash(v)
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return ""
	}
	var ok bool
	if e.Time, ok = parseTime(read("time")); !ok {
		return e, ErrTime
	}
	e.Addr, e.User, e.Route = text("addr"), text("user"), text("route")
	if e.Method, e.Target = text("method"), text("target"); e.Method != "" && e.Target != "" {
		return e, e.request(e.Method + " " + e.Target)
	}
	line, _ = e.at("request").(string)
	return e, e.request(line)
}

// at returns the value at a path. A name of the top level may itself have dots in it.
func (e *Entry) at(path string) any {
	if v, found := e.doc[path]; found {
		return v
	}
	var v any = e.doc
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// parseTime reads a time in RFC 3339, in the common log format, or since the Unix epoch. The
// size of the number tells seconds, milliseconds, microseconds and nanoseconds apart.
func parseTime(v any) (time.Time, bool) {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || v < 0 || v > math.MaxInt64/2 {
			return time.Time{}, false
		}
		switch {
		case v >= 1e17:
			v /= 1e9
		case v >= 1e14:
			v /= 1e6
		case v >= 1e11:
			v /= 1e3
		}
		return time.UnixMicro(int64(math.Round(v * 1e6))), true
	case string:
		for _, layout := range []string{time.RFC3339Nano, commonTime, "2006-01-02T15:04:05.999999999-0700", "2006-01-02 15:04:05.999999999Z07:00"} {
			if t, err := time.Parse(layout, v); err == nil {
				return t, true
			}
		}
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return parseTime(f)
		}
	}
	return time.Time{}, false
}

// jsonHeader finds a header under the names that servers give it: nginx's
// variable http_x_y, Caddy's request.headers, Traefik's request_X-Y.
func (e *Entry) jsonHeader(name string) (value string, known bool) {
	canonical := http.CanonicalHeaderKey(name)
	if headers, ok := e.at("request.headers").(map[string]any); ok {
		for key, v := range headers {
			if http.CanonicalHeaderKey(key) != canonical {
				continue
			}
			if list, _ := v.([]any); len(list) > 0 {
				v = list[0]
			}
			value, known = v.(string)
			return value, known
		}
		return "", true // the list has all headers of the request
	}
	for _, key := range []string{"http_" + strings.ReplaceAll(strings.ToLower(name), "-", "_"), "request_" + canonical, canonical} {
		if v, found := e.doc[key]; found {
			text, _ := v.(string)
			return dash(text), true
		}
	}
	return "", false
}
