package expression

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

func testSources() *Sources {
	return &Sources{
		IP: keyfuncs.ClientIP(), Address: keyfuncs.ClientIP(keyfuncs.IPv6Prefix(128)),
		User: func(r core.Request) string { return "ann" },
	}
}

func evaluate(t testing.TB, text string, r *http.Request) (string, error) {
	t.Helper()
	e, bad := Compile(text, testSources(), Text)
	if bad != nil {
		t.Fatal(bad.Problem, bad.Hint)
	}
	b, err := e.Key(nil, httprequest.Request{HTTP: r})
	return string(b), err
}

func TestExpressions(t *testing.T) {
	request := func(contentType, body string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/a/b?q=1&identifier=x%20y&empty=", strings.NewReader(body))
		r.RemoteAddr = "10.1.2.3:5"
		r.Header.Set("X-Api-Key", "K1")
		r.Header.Set("Content-Type", contentType)
		r.AddCookie(&http.Cookie{Name: "sid", Value: "s1"})
		return r
	}
	form := func() *http.Request {
		return request("application/x-www-form-urlencoded", "username=bob&n=5")
	}
	json := func() *http.Request {
		return request("application/json; charset=utf-8", `{"a":{"b":"deep"},"n":5}`)
	}
	v6 := form() // the address of lists is whole, that of keys is a prefix
	v6.RemoteAddr = "[2001:db8::1:2:3:4]:5"
	for _, c := range []struct {
		text string
		r    *http.Request
		want string
	}{
		{`cidr(ip, "2001:db8::1:2:3:4")`, v6, "true"},
		{`cidr(ip, "2001:db8::1:2:3:5")`, v6, "false"},
		{`ip`, v6, "2001:db8::/64"},
		{`method`, form(), "POST"},
		{`path`, form(), "/a/b"},
		{`route`, form(), ""},
		{`ip`, form(), "10.1.2.3"},
		{`user`, form(), "ann"},
		{`header["x-api-key"]`, form(), "K1"},
		{`query["q"]`, form(), "1"},
		{`query.q`, form(), "1"},
		{`cookie["sid"]`, form(), "s1"},
		{`form["username"]`, form(), "bob"},
		{`form["username"]`, json(), ""},
		{`json["a.b"]`, json(), "deep"},
		{`json["a.b"]`, form(), ""},
		{`method + " " + path`, form(), "POST /a/b"},
		{`lower(method)`, form(), "post"},
		{`method in ["GET", "HEAD"]`, form(), "false"},
		{`path startsWith "/a" and not (path contains "z")`, form(), "true"},
		{`path matches "^/a/[a-z]+$"`, form(), "true"},
		{`len(query["identifier"])`, form(), "3"},
		{`1.5 + 1`, form(), "2.5"},
		{`3 / 2`, form(), "1.5"},
		{`int(query["q"]) + 1`, form(), "2"},
		{`nil`, form(), ""},
		{`header["x-none"] == "" ? ip : header["x-none"]`, form(), "10.1.2.3"},
		{`cidr(ip, "192.168.0.0/16") ? "home" : cidr(ip, "10.0.0.0/8") ? "lan" : "net"`, form(), "lan"},
		{`cidr(ip, "10.1.2.3")`, form(), "true"},
		{`path[1:2]`, form(), "a"},
		{`#[attributes.method]`, form(), "POST"},
		{` #[ attributes.requestPath ] `, form(), "/a/b"},
		{`#[attributes.remoteAddress]`, form(), "10.1.2.3"},
		{`#[attributes.queryParams['identifier']]`, form(), "x y"},
		{`#[attributes.queryParam['identifier']]`, form(), "x y"}, // a spelling of MuleSoft's documentation
		{`#[attributes.queryParams.identifier]`, form(), "x y"},
		{`#[attributes.headers['X-API-KEY']]`, form(), "K1"},
		{`#[attributes['method'] ++ attributes.requestPath]`, nil, ""},
	} {
		if c.r == nil { // DataWeave's own operators are not spoken
			if _, bad := Compile(c.text, testSources(), Text); bad == nil {
				t.Errorf("%s is taken", c.text)
			}
			continue
		}
		got, err := evaluate(t, c.text, c.r)
		if err != nil || got != c.want {
			t.Errorf("%s is %q (%v), want %q", c.text, got, err, c.want)
		}
	}
}

// Scopes are pooled: no request may see what another one has.
func TestExpressionsRunConcurrently(t *testing.T) {
	e, bad := Compile(`header["x-id"] + "/" + query["id"] + (cidr(ip, "10.0.0.0/8") ? "!" : "?")`, testSources(), Text)
	if bad != nil {
		t.Fatal(bad.Problem)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			id := strings.Repeat(string(rune('a'+i)), i+1)
			r := httptest.NewRequest(http.MethodGet, "/?id="+id, nil)
			r.RemoteAddr = "10.0.0.1:1"
			r.Header.Set("X-Id", id)
			for range 500 {
				if key, err := e.Key(nil, httprequest.Request{HTTP: r}); err != nil || string(key) != id+"/"+id+"!" {
					t.Errorf("%q, %v", key, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// What an expression costs is bounded by its own length and that of what it
// looks at: nothing in the language makes long things of short ones.
func TestExpressionsThatWouldTakeMuch(t *testing.T) {
	for _, text := range []string{
		`1..1000000000`, `len(1..1000000000)`, `map([1], #)`, `all([1], true)`, `reduce([1], # + #acc)`, `let x = 1; x`, `repeat("x", 1000000000)`,
		`sum(1..10)`, `toJSON(header)`, `fromJSON(path)`, `join(split(path, ""), "xxxxxxxx")`, `replace(path, "", "xxxxxxxx")`, `now()`, `date(path)`,
		`[1,2,3]`, `header`, `$env`, `$env["method "]`, `attributes`, `"a" matches path`, `method()`, `ip.x`, `len`, `# `, `.x`, ``, ` `,
		strings.Repeat("-", 2000) + "1", strings.Repeat("path+", 600) + "path", strings.Repeat("x", 5000),
		`header "x"`, "`" + "a", `"\u{110000}"`, `cidr(ip, "10.0.0.0/8"`, `cidr()`, `cidr(1, "10.0.0.0/8")`, `cidr(query["q"], "10.0.0.0/8")`, `header[1]`, `header[""]`, `query[""]`, `json[".a"]`, `json["a..b"]`,
	} {
		if e, bad := Compile(text, testSources(), Text); bad == nil {
			t.Errorf("%s is taken, as %v", words.Shorten(text), e)
		} else if len(bad.Problem) > 1000 {
			t.Errorf("%s: an error of %d bytes", words.Shorten(text), len(bad.Problem))
		}
	}
}

func headers(n int) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Method = strings.Repeat("a", n)
	r.Header.Set("X", r.Method)
	return r
}

// The work of a regular expression is its program's size multiplied by the
// length of its input: an expression has a bound for both.
func TestTheWorkOfARegularExpressionIsBounded(t *testing.T) {
	for text, least := range map[string]int{
		`header["x"] matches "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$"`: 5000, `header["x"] matches "(a|b|c|aa|bb){1,40}x"`: 1000,
		`header["x"] + "a"`: maxInput, `header["x"] matches "a"`: maxInput, `method + "a"`: maxInput,
	} {
		e, bad := Compile(text, testSources(), Text)
		if bad != nil {
			t.Fatal(bad.Problem)
		}
		most := e.mostInput()
		if most < least || most > maxInput || e.patterns*most > maxWork {
			t.Errorf("%s: %d instructions and %d bytes", text, e.patterns, most)
		}
		for n, refused := range map[int]bool{most: false, most + 1: true} {
			if _, err := e.value(httprequest.Request{HTTP: headers(n)}); errors.Is(err, core.ErrBadRequest) != refused {
				t.Errorf("%s of %d bytes: %v", text, n, err)
			} else if refused && !strings.Contains(err.Error(), ": "+strings.Fields(text)[0]+" has ") {
				t.Errorf("says %v", err)
			}
		}
	}
	// What it reads is counted together, and anew for each request.
	e, _ := Compile(`header["x"] + header["x"] == "" `, testSources(), Text)
	for range 2 {
		for n, refused := range map[int]bool{maxInput / 2: false, maxInput/2 + 1: true} {
			if _, err := e.value(httprequest.Request{HTTP: headers(n)}); (err != nil) != refused {
				t.Errorf("twice %d bytes: %v", n, err)
			}
		}
	}
}

// The worst regular expressions that are taken, over the longest input.
func BenchmarkWorstExpression(b *testing.B) {
	for _, text := range []string{`header["x"] matches "(a|b|c|aa|bb){1,40}x"`, `header["x"] matches "(a*)*(a|aa)*[a-z]{0,150}x"`, `header["x"] matches "(x+x+)+y"`, `lower(upper(header["x"])) contains "aaaaaaaab"`} {
		b.Run(words.Shorten(text), func(b *testing.B) {
			e, bad := Compile(text, testSources(), Text)
			if bad != nil {
				b.Fatal(bad.Problem)
			}
			r := httprequest.Request{HTTP: headers(e.mostInput())}
			for b.Loop() {
				if _, err := e.value(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestPrefixes(t *testing.T) {
	for text, want := range map[string]string{ // "": an error
		"10.0.0.0/8": "10.0.0.0/8", "10.1.2.3": "10.1.2.3/32", "10.1.2.3/32": "10.1.2.3/32", "0.0.0.0/0": "0.0.0.0/0",
		"2001:db8::/32": "2001:db8::/32", "2001:db8::1": "2001:db8::1/128", "::/0": "::/0", "fe80::/10": "fe80::/10",
		// An IPv4 address in IPv6 is the IPv4 address. A prefix of such addresses would
		// contain none, because addresses are compared without that form.
		"::ffff:10.1.2.3": "10.1.2.3/32", "::ffff:10.0.0.0/104": "",
		"fe80::1%eth0": "", "fe80::%eth0/10": "",
		"": "", "x": "", "10.0.0": "", "10.0.0.0/33": "", "10.0.0.0/": "", "/8": "", "10.0.0.1/8": "", "2001:db8::1/32": "",
	} {
		got, err := ParsePrefix(text)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%q: %v (%v), want %q", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: the error does not name it: %v", text, err)
		}
	}
	if _, err := ParsePrefix("10.0.0.1/8"); err == nil || !strings.Contains(err.Error(), "10.0.0.0/8") {
		t.Errorf("the error does not say what to write: %v", err)
	}
}

// hits returns what a request costs.
func hits(t *testing.T, text, target string) (int64, error) {
	t.Helper()
	e, bad := Compile(text, testSources(), Number)
	if bad != nil {
		t.Fatalf("%s: %s", text, bad.Problem)
	}
	return e.Hits(httprequest.Request{HTTP: httptest.NewRequest(http.MethodGet, target, nil)})
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
		`max(1, int("2305843009213693952") * 1000)`: -1, `max(1, int("9223372036854775807") + 1)`: -1, `int("-9223372036854775808") - int("9223372036854775807")`: -1, `7 * 6 - 2 + int("1")`: 41, // overflow
	} {
		switch got, err := hits(t, text, "/?n=7"); {
		case want < 0 && !errors.Is(err, core.ErrBadRequest):
			t.Errorf("%s: %d, %v, want a bad request", text, got, err)
		case want >= 0 && (err != nil || got != want):
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
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

// posted returns a request with a body.
func posted(contentType string, body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", body)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
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

// No expression panics, whatever a client sends, and a key is not much longer than what it was made
// from. How long the worst expressions take is measured by BenchmarkWorstExpression.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		"method", `header["x"] + query["y"]`, `cidr(ip, "10.0.0.0/8")`, "#[attributes.queryParams['identifier']]", `path matches "^/a+$"`, `len(form["a"]) > 3 ? "x" : json["a.b"]`,
		`path[1:2] in ["a"]`, `path[5:2] + path`, `int(query["y"]) % 0`, `-9223372036854775808 / -1`, `1.0 / 0`, `lower(upper(trim(path)))`, `nil ?? user`, `path?.x`, `not ("a" < path)`, `max(1, 2.5)`,
	} {
		f.Add(text, "value", "/path")
	}
	f.Fuzz(func(t *testing.T, text, value, path string) {
		var all [3]*Expression
		for kind := range Kind(len(all)) {
			e, bad := Compile(text, testSources(), kind)
			if all[kind] = e; (e == nil) != (bad != nil && bad.Problem != "") {
				t.Errorf("kind %d: %v, %+v", kind, e, bad)
			}
		}
		request := &http.Request{Method: http.MethodPost, Header: http.Header{"X": {value}, "Content-Type": {"application/x-www-form-urlencoded"}}, Body: io.NopCloser(strings.NewReader("a=" + value)), RemoteAddr: value}
		request.URL = httptest.NewRequest(http.MethodGet, "/", nil).URL
		request.URL.Path, request.URL.RawQuery = path, "y="+value
		r := httprequest.Request{HTTP: request.WithContext(t.Context())}
		if e := all[Text]; e != nil {
			key, err := e.Key(nil, r)
			if most := maxNodesOf*(len(value)+len(path)+100) + len(text); err == nil && len(key) > most {
				t.Errorf("a key of %d bytes", len(key))
			}
		}
		if e := all[Bool]; e != nil {
			e.Holds(r)
		}
		if e := all[Number]; e != nil {
			if n, err := e.Hits(r); err == nil && (n < 0 || n > core.MaxQuota+1) {
				t.Errorf("%d hits", n)
			}
		}
	})
}
