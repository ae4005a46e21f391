package keyfuncs_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
	"github.com/floodgate-go/floodgate/internal/usernames"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestQueryAndCookieRefuseValuesThatHandlersReadDifferently(t *testing.T) {
	f := keyfuncs.Query("id")
	for query, want := range map[string]string{
		"id=a": "a", "x=1&id=a%20b+c&y": "a b c", "id": "", "id=": "", "": "", "x=;": "", "id=a&id=a": "a", "idx=b&id=a": "a",
		"id=a&id=b": bad, "ID=a": bad, "id=a&ID=a": bad, "id[]=a": bad, "id=a;b": bad, "x;id=a": bad, "id=%zz": bad, "id=%": bad, "%69d=a": "a",
		strings.Repeat("a=b&", 1000) + "id=a": bad, strings.Repeat("a=b&", 2000): "",
	} {
		check(t, "?"+query, f, &request{rawQuery: query}, want)
	}
	f = keyfuncs.Cookie("sid")
	for line, want := range map[string]string{
		"sid=abc": "abc", "sid=%61bc": "abc", "a=b; sid=abc; c": "abc", `sid="abc"`: "abc", "sid=a+b": "a b", "sid": "", "sid=": "", "a=b": "", "sid=abc ;": "abc",
		"sid=abc; sid=abc": "abc", "sid=abc; sid=%61bc": "abc", "sid=abc; sid=abd": bad, "SID=abc": bad, "sid[]=abc": bad, "sid=%zz": bad, "sid= abc": bad,
		"sid=abc~": "abc~", `sid="`: bad, `sid="abc`: bad, "sid=abc\x7f": bad, `sid=abc\`: bad,
		`sid= "abc"`: bad, `sid=a"b`: bad, "sid=a\tb": bad, "sid=é": bad, "\tsid=abc": bad, strings.Repeat("a=b;", 1000) + "sid=a": bad, strings.Repeat("a=b;", 2000): "", "xsid=1": "",
	} {
		check(t, line, f, &request{header: headers("Cookie", line)}, want)
	}
	check(t, "two lines", f, &request{header: headers("Cookie", "sid=a", "Cookie", "sid=b")}, bad)
}

// The client is told what is wrong with which value of the request.
func TestWhatTheClientIsTold(t *testing.T) {
	sid, id, username := keyfuncs.Cookie("sid"), keyfuncs.Query("id"), keyfuncs.PostField("username")
	for _, row := range []struct {
		f    core.KeyFunc
		r    *request
		want string
	}{
		{keyfuncs.Header("X-Two"), &request{header: headers("X-Two", "a", "X-Two", "b")}, `the header "X-Two" is given twice`},
		{sid, &request{header: headers("Cookie", "sid=a; sid=b")}, `the cookie "sid" is given twice with different values`},
		{sid, &request{header: headers("Cookie", `sid=a\b`)}, `the cookie "sid" cannot be read`},
		{id, &request{rawQuery: "ID=a"}, `the query parameter "id" is given with another spelling of its name`},
		{id, &request{rawQuery: "id=%zz"}, `the query parameter "id" is not escaped correctly`},
		{id, &request{rawQuery: "id=a" + strings.Repeat("&a", 1000)}, `the query parameter "id" cannot be read: there are too many fields`},
		{username, formRequest("username=a&username=b"), `the field "username" is given twice`},
		{username, &request{rawQuery: "username=a"}, `the field "username" must not be in the URL's query`},
		{username, &request{header: headers("Content-Type", formType), bodyErr: errors.New("reset")}, `the field "username" cannot be read`},
		{username, &request{header: headers("Content-Type", formType), bodyErr: core.ErrBodyRead}, `the field "username": the body was read by a middleware before the limiter: put the limiter first`},
		{username, &request{values: map[any]any{requestlog.NoBodyKey{}: requestlog.ErrNoBody}}, `the field "username": a remote procedure call has no body with fields: use a key function that reads the message`},
		{keyfuncs.PostField("username", keyfuncs.Normalize(usernames.Plain)), formRequest("username=a%00"), `the field "username": a name must be UTF-8 text, without control characters, invisible characters and special spaces`},
	} {
		_, err := row.f(nil, row.r)
		var told *core.BadRequestError
		if !errors.As(err, &told) || told.Detail != row.want {
			t.Errorf("told %+v of %v, want %s", told, err, row.want)
		}
	}
}

// The key is a value that net/url finds under the name, or the request is refused.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"id=a", "ID=a&id=b", "%69d=%20+", "id=a;b&id", "a&&id=%zz", "id[]=1"} {
		f.Add(s)
	}
	key := keyfuncs.Query("id")
	f.Fuzz(func(t *testing.T, query string) {
		got, err := key(nil, &request{rawQuery: query})
		if err != nil {
			return
		}
		values, _ := url.ParseQuery(query)
		for name, all := range values {
			for _, v := range all {
				if strings.EqualFold(name, "id") && v != string(got) {
					t.Errorf("%q: key %q, a handler sees %q", query, got, v)
				}
			}
		}
	})
}

// The key is the value that net/http reads, decoded as Gin does, or the request is refused.
func FuzzCookie(f *testing.F) {
	for _, s := range []string{"sid=a", "sid=%61; sid=a", `a=b; sid="x y"`, "sid= a", "SID=1;sid"} {
		f.Add(s)
	}
	key := keyfuncs.Cookie("sid")
	f.Fuzz(func(t *testing.T, line string) {
		got, err := key(nil, &request{header: headers("Cookie", line)})
		if err != nil {
			return
		}
		for _, c := range (&http.Request{Header: headers("Cookie", line)}).Cookies() {
			if v, err := url.QueryUnescape(c.Value); strings.EqualFold(c.Name, "sid") && (err != nil || v != string(got)) {
				t.Errorf("%q: key %q, a handler sees %q", line, got, c.Value)
			}
		}
	})
}

// reread is a request whose framework reads another cookie than the header has:
// fasthttp puts the header together anew once a handler has read a cookie.
type reread struct {
	*request
	value string
	found bool
}

func (r reread) Cookie(string) (string, bool) { return r.value, r.found }

func TestACookieThatTheFrameworkReadsDifferentlyIsRefused(t *testing.T) {
	for _, row := range []struct {
		header, value string
		found, ok     bool
	}{
		{"sid=a", "a", true, true},
		{"sid=%61", "%61", true, true},
		{"sid=%C3%A9", "é", true, true},
		{`sid="a"`, "a", true, true},
		{`sid="a"`, `"a"`, true, true},
		{"sid=a", "", false, false},
		{"sid=a", "b", true, false}, {"sid=a; sid=b", "b", true, false}, {strings.Repeat("a=b;", 1000) + "sid=a", "a", true, false},
		{`sid=a"b`, `a"b`, true, false}, {`sid=a\b`, `a\b`, true, false}, {"sid=a\x1fb", "a\x1fb", true, false}, {"sid=a\x7fb", "a\x7fb", true, false}, {"sid=a b", "a b", true, true},
		{"sid=a", "%zz", true, false},
		{"other=a", "a", true, false},
		{"other=a", "", true, true},
		{"other=a", "%zz", true, false},
		{"other=a", `a"b`, true, false},
		{"other=a", "%zz\x01", true, false},
		{"other=a", "", false, true},
		{"sid=", "", false, true},
	} {
		r := reread{&request{header: headers("Cookie", row.header)}, row.value, row.found}
		if _, err := keyfuncs.Cookie("sid")(nil, r); (err == nil) != row.ok || err != nil && !errors.Is(err, core.ErrBadRequest) {
			t.Errorf("the header has %s, the framework %q, %v: error %v", row.header, row.value, row.found, err)
		}
	}
}
