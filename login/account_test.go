package login_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

func TestSourcesAndSpellings(t *testing.T) {
	c := login.Config{
		Field: "username",
		Sources: []core.KeyFunc{
			keyfuncs.PostField("email"), keyfuncs.PostField("user[name]"),
			keyfuncs.PostField("-", keyfuncs.JSONPath("user", "name")), login.BasicUser(),
		},
		Attempts: core.PerMinute(1000),
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:x"))
	post := func(kind, body string, header ...string) *request {
		r := form("203.0.113.1", "")
		r.header = http.Header{"Content-Type": {kind}}
		for i := 0; i < len(header); i += 2 {
			r.header.Add(header[i], header[i+1])
		}
		r.body = body
		return r
	}
	const urlencoded, json = "application/x-www-form-urlencoded", "application/json"
	s := newSite(t, c)
	all := []*request{
		form("203.0.113.1", "alice"), form("203.0.113.1", " ALICE "), form("203.0.113.1", "ａｌｉｃｅ"),
		post(urlencoded, "email=alice"), post(urlencoded, "user%5Bname%5D=alice"), post(json, `{"username":"Alice"}`),
		post(json, `{"user":{"name":"alice"}}`), post("text/plain", "", "Authorization", basic),
		post(urlencoded, "username=alice&email=ALICE", "Authorization", basic),
	}
	for i, r := range all {
		if got, want := s.serve(r, 401), map[bool]int{true: 401, false: 429}[i < 5]; got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
	}
	for name, r := range map[string]*request{
		"NUL": form("203.0.113.1", "alice\x00"), "zero width": form("203.0.113.1", "alice\u200b"), "another": form("203.0.113.1", "bob"),
		"no UTF-8": form("203.0.113.1", "alice\xff"),
	} {
		if got := s.serve(r, 401); got != 401 {
			t.Errorf("%s: %d, want an account of its own", name, got)
		}
	}
	if login.Normalize("e\u0301") != login.Normalize("É") {
		t.Error("composed and decomposed characters differ")
	}
	for name, r := range map[string]*request{
		"two that differ":        post(urlencoded, "username=alice&email=bob"),
		"form and Basic":         post(urlencoded, "username=bob", "Authorization", basic),
		"none":                   post(urlencoded, "password=x"),
		"white space":            form("203.0.113.1", " \t "),
		"twice":                  post(urlencoded, "username=a&username=b"),
		"two Authorization":      post(urlencoded, "username=alice", "Authorization", basic, "Authorization", basic),
		"another type":           post("text/plain", "username=alice"),
		"malformed":              post(json, `{"username":`),
		"Basic without a colon":  post("text/plain", "", "Authorization", "Basic YWxpY2U="),
		"Basic that is not":      post("text/plain", "", "Authorization", "Basic %%%"),
		"another authentication": post("text/plain", "", "Authorization", "Bearer x"),
	} {
		reached := s.reached.Load()
		if got := s.serve(r, 401); got != http.StatusBadRequest || s.reached.Load() != reached {
			t.Errorf("%s: %d, want 400", name, got)
		}
	}
	for _, authorization := range []string{"Basic\tYWxpY2U6eA==", "BasicXYWxpY2U6eA==", "BasicYWxpY2U6eA==", "Basic", "Basic YWxpY2U=", "bAsIc %%%"} {
		if got := s.serve(post(urlencoded, "username=alice", "Authorization", authorization), 401); got != http.StatusBadRequest {
			t.Errorf("%q beside another name: %d, want 400", authorization, got)
		}
	}
	for _, authorization := range []string{"Bearer x", "", "Bas", "Digest username=\"bob\""} {
		if got := s.serve(post(urlencoded, "username=carol", "Authorization", authorization), 200); got != http.StatusOK {
			t.Errorf("%q beside another name: %d, want 200", authorization, got)
		}
	}
	c.AllowUnnamed = true
	s = newSite(t, c)
	s.want(many(7, func(int) int { return s.serve(post(urlencoded, "password=x"), 401) }), "map[401:5 429:2]")
}

func TestNamelessRequestsAreChargedToTheAddress(t *testing.T) {
	s := newSite(t, login.Config{})
	r := form("203.0.113.1", "")
	s.want(many(25, func(int) int { return s.serve(r, 401) }), "map[400:20 429:5]")
}

func TestMethods(t *testing.T) {
	s := newSite(t, login.Config{})
	page := &request{ctx: context.Background(), method: http.MethodGet, peer: "203.0.113.1"}
	s.want(many(100, func(int) int { return s.serve(page, 200) }), "map[200:100]")
	hidden := form("203.0.113.1", "alice")
	hidden.method = http.MethodGet
	s.want(many(7, func(int) int { return s.serve(hidden, 401) }), "map[401:5 429:2]")
	s = newSite(t, login.Config{Methods: []string{"PUT", "GET"}})
	s.want(many(25, func(int) int { return s.serve(page, 200) }), "map[400:20 429:5]")
}
