package policy_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
)

// A value that two frameworks read differently is refused, or is one value.
func TestAValueIsTheOneThatEveryFrameworkReads(t *testing.T) {
	const form, json = "application/x-www-form-urlencoded", "application/json"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("user=ann"))
	_ = z.Close()
	cookie := func(text string) option { return header("Cookie", text) }
	both := func(first, second option) option {
		return func(r *http.Request) { first(r); second(r) }
	}
	for name, c := range map[string]struct {
		key, target string
		request     option
		status      int // of the second request; the first one is of ann
	}{
		"the same user":                        {`form["user"]`, "/", body(form, "user=ann"), 429},
		"another user":                         {`form["user"]`, "/", body(form, "user=bob"), 200},
		"a decoy in the query":                 {`form["user"]`, "/?user=bob", body(form, "user=ann"), 400},
		"the query alone":                      {`form["user"]`, "/?user=ann", body("text/plain", ""), 400},
		"another spelling":                     {`form["user"]`, "/", body(form, "USER[]=ann"), 429},
		"a form that is compressed":            {`form["user"]`, "/", both(body(form, zipped.String()), header("Content-Encoding", "gzip")), 400},
		"a form that is too long":              {`form["user"]`, "/", body(form, "x="+strings.Repeat("x", 1<<17)+"&user=ann"), 400},
		"a body that is no form":               {`form["user"]`, "/", body("text/plain", "user=ann"), 200},
		"a parameter given twice":              {`query["user"]`, "/?user=bob&user=ann", header("X", "y"), 400},
		"a parameter in other letters":         {`query["user"]`, "/?USER=ann", header("X", "y"), 400},
		"a parameter with an escape":           {`query["user"]`, "/?us%65r=%61nn", header("X", "y"), 429},
		"a cookie with an escape":              {`cookie["user"]`, "/", cookie("user=%61nn"), 429},
		"a cookie given twice":                 {`cookie["user"]`, "/", cookie("user=bob; user=ann"), 400},
		"a member of an object":                {`json["user"]`, "/", body(json, `{"user":"ann"}`), 429},
		"a member given twice":                 {`json["user"]`, "/", body(json, `{"user":"bob","User":"ann"}`), 400},
		"an object that is compressed":         {`json["user"]`, "/", both(body(json, zipped.String()), header("Content-Encoding", "gzip")), 400},
		"an expression made of a cookie":       {`"u:" + cookie["user"]`, "/", cookie("user=%61nn"), 429},
		"an expression made of two parameters": {`"u:" + query["user"]`, "/?user=bob&user=ann", header("X", "y"), 400},
	} {
		s := newSite(t, "policies: [{name: a, key: '"+c.key+"', limits: 1/h}]")
		first := map[string]option{
			"form": body(form, "user=ann"), "json": body(json, `{"user":"ann"}`), "cook": cookie("user=ann"), "quer": header("X", "y"),
		}[strings.TrimPrefix(c.key, `"u:" + `)[:4]]
		target := "/"
		if strings.Contains(c.key, "query") {
			target = "/?user=ann"
		}
		s.expect(200, "POST", target, first)
		if w := s.send("POST", c.target, c.request); w.Code != c.status {
			t.Errorf("%s: %d, want %d", name, w.Code, c.status)
		}
	}
}
