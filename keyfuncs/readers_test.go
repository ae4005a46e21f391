package keyfuncs_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

const bad = "<bad request>"

// check compares a key, or a bad request, with what is wanted.
func check(t *testing.T, what string, f core.KeyFunc, r *request, want string) {
	t.Helper()
	key, err := f(nil, r)
	switch {
	case want == bad && !errors.Is(err, core.ErrBadRequest):
		t.Errorf("%s: key %q, error %v, want a bad request", what, key, err)
	case want == bad:
		var told *core.BadRequestError
		if !errors.As(err, &told) || strings.Contains(told.Detail, "victim") {
			t.Errorf("%s: the client is told %+v", what, told)
		}
	case err != nil || string(key) != want:
		t.Errorf("%s: key %q, error %v, want %q", what, key, err, want)
	}
}

// A handler that reads the query and the body together could take the query's value.
func TestPostFieldRefusesTheFieldInTheQuery(t *testing.T) {
	const form, json = "username=decoy", `{"username":"decoy"}`
	f := keyfuncs.PostField("username")
	for _, query := range []string{
		"username=victim", "USERNAME=victim", "a=b&user%6eame=victim", "username", "username=", "username[]=victim", "[userna[]me]=victim",
		"%zz&username=victim", "%75sername=victim", "username=%zz", "username=victim;", ";username=victim", "a=b;username=victim", "u%C5%BFername=victim",
		strings.Repeat("a=b&", 20_000) + "username=victim",
	} {
		check(t, "form?"+query, f, &request{rawQuery: query, header: headers("Content-Type", formType), body: form}, bad)
		check(t, "json?"+query, f, &request{rawQuery: query, header: headers("Content-Type", jsonType), body: json}, bad)
		check(t, "none?"+query, f, &request{rawQuery: query}, bad)
	}
	for _, query := range []string{"", "&", "=username", "user=name", "user+name=x", "next=%2Flogin%3Fusername%3Dx", "usernam%=x", "%75%73%65%72%6eam%6=x"} {
		check(t, "form?"+query, f, &request{rawQuery: query, header: headers("Content-Type", formType), body: form}, "decoy")
	}
	nested := keyfuncs.PostField("name", keyfuncs.JSONPath("user", "name"))
	body := &request{header: headers("Content-Type", jsonType), body: `{"user":{"name":"alice"}}`}
	for query, want := range map[string]string{"name=x": bad, "NAME": bad, "user=x": "alice", "user[name]=victim": bad, "user.NAME=victim": bad, "user[name]x=victim": bad} {
		body.rawQuery = query
		check(t, "nested?"+query, nested, body, want)
	}
}

func TestSpellingsOfAPathAreTheSameField(t *testing.T) {
	f := keyfuncs.PostField("user[name]")
	for body, want := range map[string]string{
		"user[name]=alice": "alice", "user.name=alice": "alice", "USER[Name]=alice": "alice", "user[][name]=alice": "alice",
		"user[name]x=alice":                "alice", // as Gin's PostFormMap
		"user[NAME]x=alice":                "alice", // and Fiber ignores letter case
		"user[name]=bob&USER[NAME]x=alice": bad,
		"user[name]=bob&user.name=alice":   bad, "user[name]=bob&user[name][]=alice": bad, "user[name]=bob&user[name]x=alice": bad,
		"name=alice": "", "user=alice": "", "username=alice": "", "user[name=alice": "alice", "a[user[name]=alice": "", "user.name]x=alice": "", "user[name]%zz=alice": bad,
	} {
		check(t, body, f, formRequest(body), want)
	}
}

// A handler may read a form and JSON into the same struct: user[name] in a form is the member
// name of the object user in JSON.
func TestUserNameInBracketsIsAMemberOfAnObjectInJSON(t *testing.T) {
	f := keyfuncs.PostField("user[name]")
	for body, want := range map[string]string{
		`{"user":{"name":"alice"}}`: "alice", `{"user[name]":"alice"}`: "alice", `{"USER":{"Name":"alice"}}`: "alice", `{"name":"alice","user":{}}`: "", `{"user":"alice"}`: "",
		`{"user[name]":"decoy","user":{"name":"victim"}}`: bad, `{"user":{"name":"victim"},"USER[name]":"decoy"}`: bad, `{"user[name]":null,"user":{"name":"victim"}}`: bad,
		`{"user":{"name":"decoy"},"user":{"name":"victim"}}`: bad, `{"user":{},"user":{"name":"victim"}}`: bad, `{"user[name]":"decoy","user[name]":"victim"}`: bad,
		"{\"u\u017fer[name]\":\"decoy\",\"user\":{\"name\":\"victim\"}}": bad,
		`{"user[name]":"alice","user":{"other":1},"x":2}`:                "alice", `{"user":[{"name":"alice"}]}`: "",
	} {
		check(t, body, f, &request{header: headers("Content-Type", jsonType), body: body}, want)
	}
	strict := keyfuncs.PostField("user[name]", keyfuncs.Strict())
	for body, want := range map[string]string{
		`{"user[name]":["victim"],"user":{"x":1}}`: bad, `{"user[name]":["victim"],"user":1}`: bad, `{"user":{"x":1},"user[name]":["victim"]}`: bad, `{"user":[{"name":"victim"}],"user[name]":"decoy"}`: bad,
		`{"user[name]":"decoy","user":[{"name":"victim"}]}`: bad, `{"user[name]":"alice","user":1}`: "alice", `{"user":{"name":"alice"}}`: "alice",
	} {
		check(t, body, strict, &request{header: headers("Content-Type", jsonType), body: body}, want)
	}
	list := keyfuncs.PostField("user[]")
	for body, want := range map[string]string{`{"user":"alice"}`: "alice", `{"user[]":"alice"}`: "alice", `{"user":"a","user[]":"b"}`: bad} {
		check(t, body, list, &request{header: headers("Content-Type", jsonType), body: body}, want)
	}
}

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
		`sid= "abc"`: bad, `sid=a"b`: bad, "sid=a\tb": bad, "sid=é": bad, "\tsid=abc": bad, strings.Repeat("a=b;", 1000) + "sid=a": bad, strings.Repeat("a=b;", 2000): "", "xsid=1": "",
	} {
		check(t, line, f, &request{header: headers("Cookie", line)}, want)
	}
	check(t, "two lines", f, &request{header: headers("Cookie", "sid=a", "Cookie", "sid=b")}, bad)
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
		{"sid=%61", "a", true, true},
		{`sid="a"`, "a", true, true},
		{`sid="a"`, `"a"`, true, true},
		{"sid=a", "", false, false},
		{"sid=a", "b", true, false},
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
