package expression

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp/syntax"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
)

func TestTheLongestExpression(t *testing.T) {
	for n, want := range map[int]bool{MaxBytes: true, MaxBytes + 1: false} {
		if _, bad := Compile("path"+strings.Repeat(" ", n-4), testSources()); (bad == nil) != want {
			t.Errorf("%d bytes: %v", n, bad)
		}
	}
}

// hits returns what a request costs.
func hits(t *testing.T, text, target string) (n int64, err error) {
	t.Helper()
	e, bad := Compile(text, testSources())
	if bad != nil {
		t.Fatalf("%s: %s", text, bad.Problem)
	}
	requesttest.See(t, httptest.NewRequest(http.MethodGet, target, nil), func(r core.Request) { n, err = e.Hits(r) })
	return n, err
}

// A cost is a number of hits from 0. One above the largest quota is allowed: no
// limit allows it. Everything else is a bad request, and no free one.
func TestHitsOfARequest(t *testing.T) {
	const most int64 = core.MaxQuota
	for text, want := range map[string]int64{
		`0`: 0, `1`: 1, `len(path)`: 1, `0.1`: 1, `1.5`: 2, `2.0`: 2, `-1`: -1, `-0.5`: 0, `-1.5`: -1,
		fmt.Sprint(most): most, fmt.Sprint(most + 1): most + 1, fmt.Sprint(most + 2): -1,
		fmt.Sprintf("%d.5", most): most + 1, fmt.Sprintf("%d.5", most+1): -1,
		`int(query["n"])`: 7, `query["n"] == "7" ? "x" : 1`: -1, `query["n"] == "7" ? nil : 1`: -1, `query["n"] == "7" ? true : 1`: -1,
		`query["n"] == "7" ? 3 : "x"`: 3, `float("NaN")`: -1, `float("Inf")`: -1, `-float("Inf")`: -1,
	} {
		switch got, err := hits(t, text, "/?n=7"); {
		case want < 0 && !errors.Is(err, core.ErrBadRequest):
			t.Errorf("%s: %d, %v, want a bad request", text, got, err)
		case want >= 0 && (err != nil || got != want):
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
}

// A mistake has the line and the column at which it is.
func TestThePlaceOfAMistake(t *testing.T) {
	for text, want := range map[string][2]int{
		`foo`: {0, 0}, `path + foo`: {0, 7}, "path +\nfoo": {1, 0}, "path +\n\n  foo": {2, 2}, "\"ä\" + foo": {0, 6},
		`header[""]`: {0, 6}, `path + header[""]`: {0, 13}, "path +\nheader[\"\"]": {1, 6}, "path +\n\n  header[\"\"]": {2, 8}, "\"ä\" + header[\"\"]": {0, 12},
	} {
		_, bad := Compile(text, testSources())
		if bad == nil || bad.Line != want[0] || bad.Column != want[1] {
			t.Errorf("%q: %+v, want the place %v", text, bad, want)
		}
	}
}

// Of several mistakes the first one is reported.
func TestTheFirstOfTwoMistakesIsReported(t *testing.T) {
	_, bad := Compile(`header[path] + (2 ** 3)`, testSources())
	if bad == nil || !strings.Contains(bad.Problem, "the name in brackets has to stand in quotes") || bad.Column != 6 {
		t.Errorf("%+v, want the name in brackets", bad)
	}
}

// size returns the number of instructions of a regular expression.
func size(t *testing.T, pattern string) int {
	t.Helper()
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		t.Fatal(err)
	}
	return len(program.Inst)
}

// Regular expressions may have as many instructions together as the bound says.
func TestTheLargestRegularExpressions(t *testing.T) {
	pattern := func(n int) string { return fmt.Sprintf("a{%d}", n) }
	more := size(t, pattern(1)) - 1 // than repetitions
	fits := maxProgram - more
	if size(t, pattern(fits)) != maxProgram {
		t.Fatalf("%s has %d instructions", pattern(fits), size(t, pattern(fits)))
	}
	one := func(n int) string { return fmt.Sprintf("path matches %q", pattern(n)) }
	for text, want := range map[string]bool{
		one(fits): true, one(fits + 1): false,
		one(100) + " or " + one(fits-100-more): true, one(100) + " or " + one(fits-100-more+1): false,
	} {
		if _, bad := Compile(text, testSources()); (bad == nil) != want {
			t.Errorf("%s: %v", text, bad)
		}
	}
}

// A name of a header is made of the characters that RFC 9110, section 5.6.2, allows.
func TestHeaderNames(t *testing.T) {
	const tokens = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for c := range rune(0x250) {
		want := c < 0x80 && strings.ContainsRune(tokens, c)
		for _, name := range []string{string(c), "X" + string(c), string(c) + "X"} {
			if err := HeaderName(name); (err == nil) != want {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if HeaderName("") == nil {
		t.Error("an empty name is taken")
	}
}

// A body that a handler may decode as JSON is refused if its type is another one,
// also if white space fills what is read of it. Other bodies have no JSON fields.
func TestABodyThatMayBeJSON(t *testing.T) {
	for body, bad := range map[string]bool{
		"": false, "a=b": false, " ": false, strings.Repeat(" ", 63): false, strings.Repeat("x", 64): false, strings.Repeat("x", 100): false,
		strings.Repeat(" ", 63) + "x": false, "{}": true, " \r\n\t{": true, "\ufeff{": true, strings.Repeat(" ", 64) + "{}": true, strings.Repeat("\n", 64): true,
		strings.Repeat(" ", 63) + "{": true,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "text/plain")
		key, err := evaluate(t, `json["a"]`, r)
		if errors.Is(err, core.ErrBadRequest) != bad || err != nil && !bad || key != "" {
			t.Errorf("%q: %q, %v", body, key, err)
		}
	}
}

// What the type of an expression's values may be, and what a client can choose of it.
func TestTheValuesOfExpressions(t *testing.T) {
	for text, want := range map[string]struct {
		isBool, isNumber bool
		written          string
	}{
		`method == "GET"`:                 {true, false, ""},
		`path`:                            {false, false, ""},
		`1`:                               {false, true, ""},
		`1.5`:                             {false, true, ""},
		`len(path)`:                       {false, true, ""},
		`path == "/" ? 1 : "x"`:           {true, true, ""},
		`header["x"]`:                     {false, false, "header"},
		`path + query["x"] + header["x"]`: {false, false, "query parameter"},
		`param["x"] + ip`:                 {false, false, "path parameter"},
		`cookie["x"] == json["a"]`:        {true, false, "cookie"},
		`len(form["x"])`:                  {false, true, "form field"},
		`json["a.b"] + ip`:                {false, false, "JSON field"},
		`cidr(ip, "10.0.0.0/8") or false`: {true, false, ""},
	} {
		e, bad := Compile(text, testSources())
		if bad != nil {
			t.Fatalf("%s: %s", text, bad.Problem)
		}
		if e.MayBeBool() != want.isBool || e.MayBeNumber() != want.isNumber || e.Written() != want.written {
			t.Errorf("%s: may be true or false: %v, a number: %v, written: %q", text, e.MayBeBool(), e.MayBeNumber(), e.Written())
		}
	}
	if got := (*Expression)(nil).Written(); got != "" {
		t.Errorf("no expression reads the %s", got)
	}
}

// A condition is true or false; of other values and of requests that it cannot be
// evaluated for it is a bad request.
func TestHolds(t *testing.T) {
	for text, want := range map[string]string{
		`method == "GET"`: "true", `method == "PUT"`: "false", `query["n"] == "7" ? "x" : true`: "bad", `int(query["x"]) > 1`: "bad", `int(query["n"]) > 1`: "true",
	} {
		e, bad := Compile(text, testSources())
		if bad != nil {
			t.Fatalf("%s: %s", text, bad.Problem)
		}
		requesttest.See(t, httptest.NewRequest(http.MethodGet, "/?n=7&x=y", nil), func(r core.Request) {
			holds, err := e.Holds(r)
			got := fmt.Sprint(holds)
			if errors.Is(err, core.ErrBadRequest) {
				got = "bad"
			}
			if got != want {
				t.Errorf("%s: %v, %v, want %s", text, holds, err, want)
			}
		})
	}
}

// An unknown name has a hint: what to write, a name that is like it, or the names
// that are known.
func TestHintsAtNames(t *testing.T) {
	for text, want := range map[string]string{
		`methd`: "did you mean method?", `cdir(ip)`: "did you mean cidr?", `header`: `write header["name"]`, `json`: `write json["name"]`,
		`plain text`: "text is written in quotes; for one counter of all requests, leave the key out",
		`plain-text`: `to read a value that a request has under this name, write header["plain-text"] or query["plain-text"]; for one counter of all requests, leave the key out`,
		`#[attributes.queryParam[‘customIdentifier’]]`: `write straight quotes, ' or "`,
		`attributes`: "known are attributes.method,", `zzzzzzzz`: "known are method,",
	} {
		if _, bad := Compile(text, testSources()); bad == nil || !strings.HasPrefix(bad.Hint, want) {
			t.Errorf("%s: %+v, want the hint %s", text, bad, want)
		}
	}
	without := testSources()
	without.User = nil
	for text, want := range map[string]bool{`user`: false, `path`: true} {
		if _, bad := Compile(text, without); (bad == nil) != want {
			t.Errorf("%s in a program without users: %+v", text, bad)
		}
	}
}

// posted returns a request with a body.
func posted(contentType string, body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", body)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

// A value of a body is read if a framework would read a body of that type. A body
// that a handler may take for JSON although its type says something else is refused.
func TestWhichBodiesHaveAValue(t *testing.T) {
	const refused = "refused"
	for _, c := range []struct{ text, contentType, body, want string }{
		{`json["a"]`, "application/json", `{"a":"x"}`, "x"},
		{`json["a"]`, "Application/JSON; charset=utf-8", `{"a":"x"}`, "x"},
		{`json["a"]`, "application/problem+json", `{"a":"x"}`, "x"},
		{`json["a"]`, "application/json; nonsense", `{"a":"x"}`, "x"},
		{`json["a"]`, "application/jsonx", `{"a":"x"}`, refused},
		{`json["a"]`, "text/plain", `{"a":"x"}`, refused},
		{`json["a"]`, "", " \t\r\n" + `{"a":"x"}`, refused},
		{`json["a"]`, "text/plain", "\ufeff" + `{"a":"x"}`, refused},
		{`json["a"]`, "text/plain", strings.Repeat(" ", 64) + `{"a":"x"}`, refused},
		{`json["a"]`, "text/plain", strings.Repeat(" ", 63) + `x`, ""},
		{`json["a"]`, "text/plain", "a=x", ""},
		{`json["a"]`, "", "", ""},
		{`form["a"]`, "application/x-www-form-urlencoded", "a=x", "x"},
		{`form["a"]`, " APPLICATION/x-www-form-urlencoded2", "a=x", refused},
		{`form["a"]`, "application/json", `{"a":"x"}`, ""},
	} {
		got, err := evaluate(t, c.text, posted(c.contentType, strings.NewReader(c.body)))
		if c.want == refused {
			if !errors.Is(err, core.ErrBadRequest) {
				t.Errorf("%s of the body %.20q of type %q: %q, %v, want a bad request", c.text, c.body, c.contentType, got, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s of the body %.20q of type %q: %q, %v, want %q", c.text, c.body, c.contentType, got, err, c.want)
		}
	}
}

// The value that decides whether a policy applies is certain: a body of another type
// is refused, because a handler may read several types into one variable.
func TestAConditionIsCertainOfABody(t *testing.T) {
	for _, c := range []struct {
		text, contentType, body string
		key, holds              bool // whether there is an answer
	}{
		{`form["a"] == ""`, "application/x-www-form-urlencoded", "b=1", true, true},
		{`form["a"] == ""`, "application/json", `{"a":"x"}`, true, false},
		{`json["a"] == ""`, "application/json", `{"b":"x"}`, true, true},
		{`json["a"] == ""`, "application/x-www-form-urlencoded", "a=x", true, true},
		{`json["a"] == ""`, "application/x-www-form-urlencoded", "a=x&a=y", true, false},
	} {
		e, bad := Compile(c.text, testSources())
		if bad != nil {
			t.Fatal(bad.Problem)
		}
		for certain, want := range map[bool]bool{false: c.key, true: c.holds} {
			requesttest.See(t, posted(c.contentType, strings.NewReader(c.body)), func(r core.Request) {
				var err error
				if certain {
					_, err = e.Holds(r)
				} else {
					_, err = e.Key(nil, r)
				}
				if (err == nil) != want || err != nil && !errors.Is(err, core.ErrBadRequest) {
					t.Errorf("%s of the body %q of type %s, certain %t: %v", c.text, c.body, c.contentType, certain, err)
				}
			})
		}
	}
}

// A body that cannot be read is no empty value.
func TestABodyThatCannotBeRead(t *testing.T) {
	broken := errors.New("the connection broke")
	for _, contentType := range []string{"application/json", "text/plain", "application/x-www-form-urlencoded", ""} {
		for _, text := range []string{`json["a"]`, `form["a"]`} {
			body := io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken))
			if key, err := evaluate(t, text, posted(contentType, body)); err == nil && !(text == `form["a"]` && !mayBeForm(contentType)) {
				t.Errorf("%s of a body of type %q that breaks: %q, no error", text, contentType, key)
			}
			read := posted(contentType, strings.NewReader("{}"))
			_, _ = io.ReadAll(read.Body)
			if key, err := evaluate(t, text, read); text == `json["a"]` && !errors.Is(err, core.ErrBadRequest) && !errors.Is(err, core.ErrBodyRead) {
				t.Errorf("%s of a body of type %q that has been read: %q, %v", text, contentType, key, err)
			}
		}
	}
}

// No expression panics, whatever a client sends, and a key is not much longer than
// what it was made from. How long the worst expressions take is measured by
// BenchmarkWorstExpression.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		"method", `header["x"] + query["y"]`, `cidr(ip, "10.0.0.0/8")`, "#[attributes.queryParams['identifier']]", `path matches "^/a+$"`, `len(form["a"]) > 3 ? "x" : json["a.b"]`,
		`path[1:2] in ["a"]`, `int(query["y"]) % 0`, `-9223372036854775808 / -1`, `1.0 / 0`, `lower(upper(trim(path)))`, `nil ?? user`, `path?.x`, `not ("a" < path)`, `max(1, 2.5)`,
	} {
		f.Add(text, "value", "/path")
	}
	f.Fuzz(func(t *testing.T, text, value, path string) {
		e, bad := Compile(text, testSources())
		if bad != nil {
			if bad.Problem == "" {
				t.Error("an error without words")
			}
			return
		}
		r := &http.Request{Method: http.MethodPost, Header: http.Header{"X": {value}, "Content-Type": {"application/x-www-form-urlencoded"}}, Body: io.NopCloser(strings.NewReader("a=" + value)), RemoteAddr: value}
		r.URL = httptest.NewRequest(http.MethodGet, "/", nil).URL
		r.URL.Path, r.URL.RawQuery = path, "y="+value
		requesttest.See(t, r.WithContext(t.Context()), func(r core.Request) {
			key, err := e.Key(nil, r)
			if most := maxNodesOf*(len(value)+len(path)+100) + len(text); err == nil && len(key) > most {
				t.Errorf("a key of %d bytes", len(key))
			}
			_, _ = e.Holds(r)
			if n, err := e.Hits(r); err == nil && (n < 0 || n > core.MaxQuota+1) {
				t.Errorf("%d hits", n)
			}
		})
	})
}
