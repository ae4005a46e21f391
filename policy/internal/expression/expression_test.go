package expression

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

func testSources() *Sources {
	return &Sources{
		IP: keyfuncs.ClientIP(), Address: keyfuncs.ClientIP(keyfuncs.IPv6Prefix(128)),
		User: func(r core.Request) string { return "ann" },
	}
}

func evaluate(t testing.TB, text string, r *http.Request) (key string, err error) {
	t.Helper()
	e, bad := Compile(text, testSources())
	if bad != nil {
		t.Fatal(bad.Problem, bad.Hint)
	}
	requesttest.See(t, r, func(r core.Request) {
		var b []byte
		b, err = e.Key(nil, r)
		key = string(b)
	})
	return key, err
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
	for _, c := range []struct {
		text string
		r    *http.Request
		want string
	}{
		{`method`, form(), "POST"},
		{`path`, form(), "/a/b"},
		{`route`, form(), ""},
		{`ip`, form(), "10.1.2.3"},
		{`user`, form(), "ann"},
		{`header["x-api-key"]`, form(), "K1"},
		{`header.Accept`, form(), ""},
		{`query["q"]`, form(), "1"},
		{`query.q`, form(), "1"},
		{`cookie["sid"]`, form(), "s1"},
		{`form["username"]`, form(), "bob"},
		{`form["username"]`, json(), ""},
		{`json["a.b"]`, json(), "deep"},
		{`json["a.b"]`, form(), ""},
		{`method + " " + path`, form(), "POST /a/b"},
		{`lower(method)`, form(), "post"},
		{`method == "POST"`, form(), "true"},
		{`method in ["GET", "HEAD"]`, form(), "false"},
		{`path startsWith "/a" and not (path contains "z")`, form(), "true"},
		{`path matches "^/a/[a-z]+$"`, form(), "true"},
		{`len(query["identifier"])`, form(), "3"},
		{`1.5 + 1`, form(), "2.5"},
		{`3 / 2`, form(), "1.5"},
		{`10 / 5`, form(), "2"},
		{`int(query["q"]) + 1`, form(), "2"},
		{`nil`, form(), ""},
		{`header["x-none"] == "" ? ip : header["x-none"]`, form(), "10.1.2.3"},
		{`cidr(ip, "10.0.0.0/8") ? "lan" : "net"`, form(), "lan"},
		{`cidr(query["q"], "10.0.0.0/8")`, form(), "false"},
		{`cidr("::ffff:10.0.0.1", "10.0.0.0/8")`, form(), "true"},
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
			if _, bad := Compile(c.text, testSources()); bad == nil {
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

// The address of lists is whole, that of keys is a prefix.
func TestCIDRSeesTheWholeAddress(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "[2001:db8::1:2:3:4]:5"
	for text, want := range map[string]string{
		`cidr(ip, "2001:db8::1:2:3:4")`: "true", `cidr(ip, "2001:db8::1:2:3:5")`: "false", `ip`: "2001:db8::/64",
	} {
		if got, err := evaluate(t, text, r); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", text, got, err, want)
		}
	}
}

func TestWhatARequestHasThatAnExpressionCannotTake(t *testing.T) {
	for text, r := range map[string]*http.Request{
		`int(query["n"])`:  httptest.NewRequest(http.MethodGet, "/?n=x", nil),
		`path[5:2] + path`: httptest.NewRequest(http.MethodGet, "/", nil),
		`form["a"] + "x"`: func() *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("a=1&a=2"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return r
		}(),
	} {
		if key, err := evaluate(t, text, r); !errors.Is(err, core.ErrBadRequest) && key == "" {
			t.Errorf("%s: %q, %v", text, key, err)
		}
	}
}

// Scopes are pooled: no request may see what another one has.
func TestExpressionsRunConcurrently(t *testing.T) {
	e, bad := Compile(`header["x-id"] + "/" + query["id"] + (cidr(ip, "10.0.0.0/8") ? "!" : "?")`, testSources())
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
			requesttest.See(t, r, func(r core.Request) {
				for range 500 {
					if key, err := e.Key(nil, r); err != nil || string(key) != id+"/"+id+"!" {
						t.Errorf("%q, %v", key, err)
						return
					}
				}
			})
		})
	}
	wg.Wait()
}

// What an expression costs is bounded by its own length and that of what it
// looks at: nothing in the language makes long things of short ones.
func TestExpressionsThatWouldTakeMuch(t *testing.T) {
	for _, text := range []string{
		`1..1000000000`, `len(1..1000000000)`, `map([1], #)`, `all([1], true)`, `reduce([1], # + #acc)`, `let x = 1; x`, `2 ** 1000000`, `repeat("x", 1000000000)`,
		`sum(1..10)`, `toJSON(header)`, `fromJSON(path)`, `join(split(path, ""), "xxxxxxxx")`, `replace(path, "", "xxxxxxxx")`, `{"a": 1}.a`, `now()`, `date(path)`,
		`[1,2,3]`, `header`, `$env`, `$env["method "]`, `attributes`, `"a" matches path`, `method()`, `ip.x`, `len`, `# `, `.x`, ``, ` `,
		strings.Repeat("-", 2000) + "1", strings.Repeat("path+", 600) + "path", strings.Repeat("x", 5000),
		`header "x"`, "`" + "a", `"\u{110000}"`, `cidr(ip, "10.0.0.0/8"`, `cidr()`, `cidr(1, "10.0.0.0/8")`, `header[1]`, `header[""]`, `json[".a"]`, `json["a..b"]`,
	} {
		if e, bad := Compile(text, testSources()); bad == nil {
			t.Errorf("%s is taken, as %v", words.Shorten(text), e.result)
		} else if len(bad.Problem) > 1000 {
			t.Errorf("%s: an error of %d bytes", words.Shorten(text), len(bad.Problem))
		}
	}
}
