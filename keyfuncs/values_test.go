package keyfuncs_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

type userID string

func TestValues(t *testing.T) {
	r := &request{
		method: "post", path: "/login", route: "POST /login",
		header:  headers("X-Api-Key", "Key", "X-Two", "a", "X-Two", "b"),
		cookies: map[string]string{"session": "s1"},
		query:   map[string]string{"q": "v"},
		values:  map[any]any{"user": "alice", "id": 42, "id64": int64(-1), "u": uint(7), "stringer": time.Second, "other": []int{1}, "u70": uint(70), "url": &url.URL{Path: "/alice"}, "empty": "", "nil": (*url.URL)(nil), "named": userID("u7"), "small": int8(3)},
	}
	for _, row := range []struct {
		name string
		f    core.KeyFunc
		want string
	}{
		{"static", keyfuncs.Static("all"), "all"},
		{"header, by any spelling of its name", keyfuncs.Header("x-api-KEY"), "Key"},
		{"header that is missing", keyfuncs.Header("X-None"), ""},
		{"cookie", keyfuncs.Cookie("session"), "s1"},
		{"cookie that is missing", keyfuncs.Cookie("none"), ""},
		{"query", keyfuncs.Query("q"), "v"},
		{"query that is missing", keyfuncs.Query("none"), ""},
		{"method, case preserved", keyfuncs.Method(), "post"},
		{"route", keyfuncs.Route(), "POST /login"},
		{"user", keyfuncs.User(func(core.Request) string { return "bob" }), "bob"},
		{"user value", keyfuncs.UserValue("user"), "alice"},
		{"user value, a number", keyfuncs.UserValue("id"), "42"},
		{"user value, a negative number", keyfuncs.UserValue("id64"), "-1"},
		{"user value, unsigned", keyfuncs.UserValue("u"), "7"},
		{"user value, unsigned, of two digits", keyfuncs.UserValue("u70"), "70"},
		{"user value, a pointer", keyfuncs.UserValue("url"), "/alice"},
		{"user value, a Stringer", keyfuncs.UserValue("stringer"), "1s"},
		{"user value, a named type", keyfuncs.UserValue("named"), "u7"},
		{"user value, a small number", keyfuncs.UserValue("small"), "3"},
		{"or skip, with a value", keyfuncs.OrSkip(keyfuncs.Query("q")), "v"},
	} {
		if got := keyOf(t, row.f, r); got != row.want {
			t.Errorf("%s: key %q, want %q", row.name, got, row.want)
		}
	}
	for name, f := range map[string]core.KeyFunc{
		"no user":          keyfuncs.User(func(core.Request) string { return "" }),
		"no user value":    keyfuncs.UserValue("none"),
		"empty user value": keyfuncs.UserValue("empty"),
		"a nil user":       keyfuncs.UserValue("nil"),
		"or skip":          keyfuncs.OrSkip(keyfuncs.Query("none")),
		"joined":           keyfuncs.Join(keyfuncs.Method(), keyfuncs.UserValue("none")),
	} {
		if _, err := f(nil, r); !errors.Is(err, core.SkipRule) {
			t.Errorf("%s: error %v, want SkipRule", name, err)
		}
	}
	if _, err := keyfuncs.UserValue("other")(nil, r); err == nil || errors.Is(err, core.SkipRule) {
		t.Errorf("a user value that is no text: error %v", err)
	}
	failed := errors.New("failed")
	fails := keyfuncs.Func(func(core.Request) (string, error) { return "", failed })
	for name, f := range map[string]core.KeyFunc{"Func": fails, "OrSkip": keyfuncs.OrSkip(fails), "Join": keyfuncs.Join(keyfuncs.Method(), fails)} {
		if _, err := f(nil, r); !errors.Is(err, failed) {
			t.Errorf("%s: error %v, want that of the function", name, err)
		}
	}
	if _, err := keyfuncs.Header("X-Two")(nil, r); !errors.Is(err, core.ErrBadRequest) {
		t.Errorf("a header that stands twice: %v", err)
	}
}

func TestInvalidArgumentsPanic(t *testing.T) {
	for text, f := range map[string]func(){
		"Func: f: nil":                       func() { keyfuncs.Func(nil) },
		"User: currentUser: nil":             func() { keyfuncs.User(nil) },
		"UserValue: key: nil":                func() { keyfuncs.UserValue(nil) },
		`Header: name: ""`:                   func() { keyfuncs.Header("") },
		`Cookie: name: ""`:                   func() { keyfuncs.Cookie("") },
		`Query: name: ""`:                    func() { keyfuncs.Query("") },
		"Join: no key functions":             func() { keyfuncs.Join() },
		"FirstOf: no key functions":          func() { keyfuncs.FirstOf() },
		"Join: a key function is nil":        func() { keyfuncs.Join(keyfuncs.Method(), nil) },
		"FirstOf: a key function is nil":     func() { keyfuncs.FirstOf(keyfuncs.Method(), nil) },
		"OrSkip: f: nil":                     func() { keyfuncs.OrSkip(nil) },
		`PostField: name: ""`:                func() { keyfuncs.PostField("") },
		"PostField: an option is nil":        func() { keyfuncs.PostField("f", keyfuncs.Strict(), nil) },
		"MaxBody: 0: must be from 1 to 2^30": func() { keyfuncs.PostField("f", keyfuncs.MaxBody(0)) },
		"JSONPath: no names":                 func() { keyfuncs.PostField("f", keyfuncs.JSONPath()) },
		"Normalize: f: nil":                  func() { keyfuncs.Normalize(nil) },
	} {
		t.Run(text, func(t *testing.T) {
			defer func() {
				if wrong, _ := recover().(error); wrong == nil || !strings.Contains(wrong.Error(), text) {
					t.Errorf("panics with %v", wrong)
				}
			}()
			f()
		})
	}
}

func show(f core.KeyFunc, r core.Request) {
	key, err := f(nil, r)
	fmt.Printf("%q %v\n", key, err)
}

func ExampleUser() {
	currentUser := func(r core.Request) string {
		user, _ := r.Value("user").(string)
		return user
	}
	show(keyfuncs.User(currentUser), &request{values: map[any]any{"user": "alice"}})
	show(keyfuncs.User(currentUser), &request{})
	// Output:
	// "alice" <nil>
	// "" floodgate: the rule does not apply to this request
}

func ExampleUserValue() {
	show(keyfuncs.UserValue("user-id"), &request{values: map[any]any{"user-id": 42}})
	// Output: "42" <nil>
}

func ExampleHeader() {
	show(keyfuncs.Header("X-Api-Key"), &request{header: headers("X-Api-Key", "secret")})
	// Output: "secret" <nil>
}

func ExampleOrSkip() {
	// Only requests with an API key are limited by it.
	show(keyfuncs.OrSkip(keyfuncs.Header("X-Api-Key")), &request{})
	// Output: "" floodgate: the rule does not apply to this request
}

func ExampleFunc() {
	tenant := keyfuncs.Func(func(r core.Request) (string, error) {
		host := r.HeaderValues("Host")
		if len(host) != 1 {
			return "", fmt.Errorf("%w: no host", core.ErrBadRequest)
		}
		return host[0], nil
	})
	show(tenant, &request{header: headers("Host", "tenant.example")})
	// Output: "tenant.example" <nil>
}

func ExampleStatic() {
	show(keyfuncs.Static("everybody"), &request{})
	// Output: "everybody" <nil>
}

func ExampleCookie() {
	show(keyfuncs.Cookie("session"), &request{cookies: map[string]string{"session": "s1"}})
	// Output: "s1" <nil>
}

func ExampleQuery() {
	show(keyfuncs.Query("tenant"), &request{query: map[string]string{"tenant": "t1"}})
	// Output: "t1" <nil>
}

func ExampleMethod() {
	show(keyfuncs.Method(), &request{method: "GET"})
	// Output: "GET" <nil>
}

func ExampleRoute() {
	show(keyfuncs.Route(), &request{path: "/items/7", route: "GET /items/{id}"})
	// Output: "GET /items/{id}" <nil>
}

func ExamplePathValue() {
	show(keyfuncs.PathValue("id"), &request{path: "/items/7", route: "GET /items/{id}", params: map[string]string{"id": "7"}})
	// Output: "7" <nil>
}
