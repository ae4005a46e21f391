package policy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/policy"
)

// A key by a parameter of the route is the parameter where the policies are mounted after
// routing. Before it, the value is empty, which the log says.
func TestAParameterOfTheRoute(t *testing.T) {
	const file = `
policies:
  - {name: tenants, key: 'param["tenant"]', limits: 1/h}
  - {name: pairs, key: 'param["tenant"] + "/" + method', limits: 9/h}
  - {name: root, match: {when: 'param["tenant"] == "root"'}, limits: 0/h}
`
	for routed, want := range map[bool]string{true: "200 429 200 429 ", false: "200 429 429 429 "} {
		var log bytes.Buffer
		s := newSite(t, file, policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
		limited, handler := httplimit.Middleware(s.set), http.NotFoundHandler()
		mux := http.NewServeMux()
		if s.handler = mux; routed {
			handler = limited(handler)
		} else {
			s.handler = limited(mux)
		}
		mux.Handle("/t/{tenant}/x", handler)
		codes := ""
		for _, path := range []string{"/t/a/x", "/t/a/x", "/t/b/x", "/t/root/x"} {
			codes += strings.Replace(fmt.Sprint(s.send("GET", path).Code, " "), "404", "200", 1)
		}
		if codes != want || strings.Contains(log.String(), "PathValue finds no value") == routed {
			t.Errorf("after routing %t: %s, want %s; the log has\n%s", routed, codes, want, &log)
		}
	}
}

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

// A handler may decode a body without a look at its type, and a framework may look only at how the
// type begins: a policy that depends on a value of the body counts such a request.
func TestABodyOfAnotherTypeGetsAroundNoPolicy(t *testing.T) {
	const object, form = `{"action":"login"}`, "action=login"
	for _, row := range []struct{ value, contentType, body string }{
		{`json["action"]`, "", object},
		{`json["action"]`, "text/plain", object},
		{`json["action"]`, "text/json", object},
		{`json["action"]`, "application /json", object},
		{`json["action"]`, "application/jsonX", object},
		{`json["action"]`, "application/x-www-form-urlencoded", object},
		{`json["action"]`, "text/plain", "\ufeff \r\n\t" + object},
		{`json["action"]`, "application/x-www-form-urlencoded", form},
		{`json["action"]`, "application/xml", "<action>login</action>"},
		{`form["action"]`, "application/x-www-form-urlencodedX", form},
		{`form["action"]`, "APPLICATION/x-www-form-urlencoded, x", form},
		{`form["action"]`, "application/x-www-form-urlencoded+json", form},
		{`form["action"]`, "multipart/form-data; boundary=b; boundary=c", "--b\r\nContent-Disposition: form-data; name=action\r\n\r\nlogin\r\n--b--\r\n"},
		{`form["action"]`, "application/json", object},
		{`form["action"]`, "text/plain", form},
	} {
		request := func(r *http.Request) {
			body(row.contentType, row.body)(r)
			if row.contentType == "" {
				r.Header.Del("Content-Type")
			}
		}
		s := newSite(t, "policies: [{name: a, match: {when: '"+row.value+" == \"login\"'}, limits: 0/h}]")
		if w := s.send("POST", "/", request); w.Code != 429 {
			t.Errorf("match.when of %s, type %q, body %q: %d, want 429", row.value, row.contentType, row.body, w.Code)
		}
	}
}

// As a key, a value that only some handlers would find is refused. The body of
// another form of request has no value.
func TestAKeyOfABodyOfAnotherType(t *testing.T) {
	for _, row := range []struct {
		key, contentType, body string
		status                 int
	}{
		{`json["user"]`, "text/plain", `{"user":"ann"}`, 400},
		{`json["user"]`, "application/x-www-form-urlencoded", ` {"user":"ann"}`, 400},
		{`json["user"]`, "text/plain", "\ufeff" + `{"user":"ann"}`, 400},
		{`json["user"]`, "text/plain", strings.Repeat(" ", 64) + `{"user":"ann"}`, 400},
		{`json["user"]`, "text/plain", strings.Repeat(" ", 63) + "x", 200},
		{`json["user"]`, "", "", 200},
		{`json["user"]`, "application/problem+json", `{"user":"ann"}`, 200},
		{`json["user"]`, "application/jsonx", `{"user":"ann"}`, 400},
		{`json["user"]`, "text/plain", "user=ann", 200},
		{`json["user"]`, "application/x-www-form-urlencoded", "user=ann", 200},
		{`json["user"]`, "application/json", `{"user":"ann"}`, 200},
		{`form["user"]`, "application/x-www-form-urlencodedX", "user=ann", 400},
		{`form["user"]`, "multipart/form-data; boundary=b; boundary=c", "--b\r\n\r\n", 400},
		{`lower(form["user"])`, "application/json", `{"user":"ann"}`, 200},
		{`form["user"]`, "application/x-www-form-urlencoded; charset=utf-8", "user=ann", 200},
	} {
		s := newSite(t, "policies: [{name: a, key: '"+row.key+"', limits: 9/h}]")
		if w := s.send("POST", "/", body(row.contentType, row.body)); w.Code != row.status {
			t.Errorf("%s, type %q, body %q: %d, want %d", row.key, row.contentType, row.body, w.Code, row.status)
		}
	}
}

// Requests without a body are what the expression says of them. If a condition cannot be
// evaluated, the policy applies.
func TestAConditionWithoutAnAnswer(t *testing.T) {
	for _, value := range []string{`json["action"]`, `form["action"]`} {
		s := newSite(t, "policies: [{name: a, match: {when: '"+value+" == \"login\"'}, limits: 0/h}]")
		s.expect(200, "GET", "/")
		s.expect(200, "POST", "/", header("Content-Type", "text/plain"))
		s.expect(429, "POST", "/", body("application/x-www-form-urlencoded", "action=a&action=b"))
	}
	s := newSite(t, `policies: [{name: a, match: {when: 'query["n"] == "text" ? "x" : int(query["n"]) > 1'}, limits: 0/h}]`)
	s.expect(200, "GET", "/?n=1")
	for _, n := range []string{"2", "few", "text"} {
		s.expect(429, "GET", "/?n="+n)
	}
}
