package policy_test

import (
	"net/http"
	"testing"
)

// A handler may decode a body without a look at its type, and a framework may look
// only at how the type begins: a policy that depends on a value of the body counts
// such a request.
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
		{`json["user"]`, "text/plain", "user=ann", 200},
		{`json["user"]`, "application/x-www-form-urlencoded", "user=ann", 200},
		{`json["user"]`, "application/json", `{"user":"ann"}`, 200},
		{`form["user"]`, "application/x-www-form-urlencodedX", "user=ann", 400},
		{`form["user"]`, "multipart/form-data; boundary=b; boundary=c", "--b\r\n\r\n", 400},
		{`form["user"]`, "application/json", `{"user":"ann"}`, 200},
		{`form["user"]`, "application/x-www-form-urlencoded; charset=utf-8", "user=ann", 200},
	} {
		s := newSite(t, "policies: [{name: a, key: '"+row.key+"', limits: 9/h}]")
		if w := s.send("POST", "/", body(row.contentType, row.body)); w.Code != row.status {
			t.Errorf("%s, type %q, body %q: %d, want %d", row.key, row.contentType, row.body, w.Code, row.status)
		}
	}
}

// Requests without a body are what the expression says of them.
func TestAConditionOnABodyThatIsNotThere(t *testing.T) {
	for _, value := range []string{`json["action"]`, `form["action"]`} {
		s := newSite(t, "policies: [{name: a, match: {when: '"+value+" == \"login\"'}, limits: 0/h}]")
		s.expect(200, "GET", "/")
		s.expect(200, "POST", "/", header("Content-Type", "text/plain"))
	}
}
