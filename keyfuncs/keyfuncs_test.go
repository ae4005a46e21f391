package keyfuncs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

type userID string

func TestValues(t *testing.T) {
	r := &request{
		method: "post", route: "POST /login",
		header:  headers("X-Api-Key", "Key", "X-Two", "a", "X-Two", "b"),
		cookies: map[string]string{"session": "s1"},
		query:   map[string]string{"q": "v"},
		values:  map[any]any{"user": "alice", "u": uint64(1 << 63), "stringer": time.Second, "other": []int{1}, "url": &url.URL{Path: "/alice"}, "empty": "", "nil": (*url.URL)(nil), "named": userID("u7"), "small": int8(3)},
	}
	for _, row := range []struct {
		name string
		f    core.KeyFunc
		want string
	}{
		{"header, by any spelling of its name", keyfuncs.Header("x-api-KEY"), "Key"},
		{"header that is missing", keyfuncs.Header("Zz-None"), ""},
		{"cookie that is missing", keyfuncs.Cookie("none"), ""}, {"query that is missing", keyfuncs.Query("none"), ""},
		{"method, as it is written", keyfuncs.Method(), "post"}, {"user value", keyfuncs.UserValue("user"), "alice"},
		{"user value, unsigned", keyfuncs.UserValue("u"), "9223372036854775808"},
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
		"joined":           keyfuncs.Join(keyfuncs.Method(), keyfuncs.OrSkip(keyfuncs.Query("none"))),
	} {
		if _, err := f(nil, r); !errors.Is(err, core.SkipRule) {
			t.Errorf("%s: error %v, want SkipRule", name, err)
		}
	}
	if _, err := keyfuncs.UserValue("other")(nil, r); err == nil || err.Error() != "keyfuncs: UserValue(other): the stored value has type []int: store a string, an integer or a fmt.Stringer" {
		t.Errorf("a user value that is no text: error %v", err)
	}
	failed := errors.New("failed")
	fails := keyfuncs.Func(func(core.Request) (string, error) { return "", failed })
	for name, f := range map[string]core.KeyFunc{"Func": fails, "OrSkip": keyfuncs.OrSkip(fails), "Join": keyfuncs.Join(keyfuncs.Method(), fails)} {
		if _, err := f(nil, r); !errors.Is(err, failed) {
			t.Errorf("%s: error %v, want that of the function", name, err)
		}
	}
}

func TestInvalidArgumentsPanic(t *testing.T) {
	for text, f := range map[string]func(){
		"Func: f: nil":                   func() { keyfuncs.Func(nil) },
		"User: currentUser: nil":         func() { keyfuncs.User(nil) },
		"UserValue: key: nil":            func() { keyfuncs.UserValue(nil) },
		`Header: name: ""`:               func() { keyfuncs.Header("") },
		`Header: name: "a b\n"`:          func() { keyfuncs.Header("a b\n") },
		`Header: name: "ä"`:              func() { keyfuncs.Header("ä") },
		`Cookie: name: ""`:               func() { keyfuncs.Cookie("") },
		`Query: name: ""`:                func() { keyfuncs.Query("") },
		`PathValue: name: ""`:            func() { keyfuncs.PathValue("") },
		"Join: no key functions":         func() { keyfuncs.Join() },
		"FirstOf: no key functions":      func() { keyfuncs.FirstOf() },
		"Join: a key function is nil":    func() { keyfuncs.Join(keyfuncs.Method(), nil) },
		"FirstOf: a key function is nil": func() { keyfuncs.FirstOf(keyfuncs.Method(), nil) },
		"OrSkip: f: nil":                 func() { keyfuncs.OrSkip(nil) },
		`PostField: name: ""`:            func() { keyfuncs.PostField("") },
		"PostField: an option is nil":    func() { keyfuncs.PostField("f", keyfuncs.Strict(), nil) },
		"JSONPath: no names":             func() { keyfuncs.PostField("f", keyfuncs.JSONPath()) },
		"Normalize: f: nil":              func() { keyfuncs.Normalize(nil) },
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

func TestFirstOf(t *testing.T) {
	failed := errors.New("failed")
	key := func(k string, err error) core.KeyFunc {
		return func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, k...), err }
	}
	noSlice := func([]byte, core.Request) ([]byte, error) { return nil, core.SkipRule }
	never := func([]byte, core.Request) ([]byte, error) {
		t.Error("a function after the first that finds something is asked")
		return nil, nil
	}
	for _, row := range []struct {
		name string
		fs   []core.KeyFunc
		want string
		err  error
	}{
		{"the first", []core.KeyFunc{key("a", nil), never}, "before1:a", nil},
		{"the first is empty", []core.KeyFunc{key("", nil), key("a", nil), never}, "before2:a", nil},
		{"the first skips, and returns no slice", []core.KeyFunc{noSlice, key("a", nil)}, "before2:a", nil},
		{"the first skips", []core.KeyFunc{key("left over", fmt.Errorf("no user: %w", core.SkipRule)), key("a", nil)}, "before2:a", nil},
		{"none finds anything", []core.KeyFunc{key("", nil), key("", core.SkipRule)}, "before", nil},
		{"all skip", []core.KeyFunc{key("", core.SkipRule), key("x", core.SkipRule)}, "before", core.SkipRule},
		{"the first fails", []core.KeyFunc{key("", failed), never}, "before1:", failed},
		{"a bad request", []core.KeyFunc{key("", core.ErrBadRequest), never}, "before1:", core.ErrBadRequest},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := keyfuncs.FirstOf(row.fs...)
			clear(row.fs) // the slice is the caller's
			got, err := f([]byte("before"), &request{})
			if string(got) != row.want || !errors.Is(err, row.err) {
				t.Errorf("key %q and error %v, want %q and %v", got, err, row.want, row.err)
			}
		})
	}
}

func ExampleFirstOf() {
	key := keyfuncs.FirstOf(keyfuncs.Header("X-User"), keyfuncs.ClientIP())
	show(key, &request{remote: "192.0.2.1:80", header: headers("X-User", "alice")})
	show(key, &request{remote: "192.0.2.1:80"})
	// Output:
	// "1:alice" <nil>
	// "2:192.0.2.1" <nil>
}

// FuzzJoin tests that different tuples have different keys, and that JoinKeys makes the same
// keys, and SplitKeys takes them apart.
func FuzzJoin(f *testing.F) {
	f.Add("a", "b-c", "a-b", "c")
	f.Add("2001:db8::1", "bob", "2001:db8:", "1:bob")
	f.Add("a\x00\x00\x00\x01", "b", "a", "\x00\x00\x00\x01b")
	f.Add("", "ab", "ab", "")
	f.Add("\x00\x00\x00\x00", "a\x00\x00\x00\x01", "\x00\x00\x00\x01", "\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		join := func(parts ...string) []byte {
			var fs []core.KeyFunc
			for _, p := range parts {
				fs = append(fs, keyfuncs.Static(p))
			}
			f := keyfuncs.Join(fs...)
			clear(fs) // the slice is the caller's
			key, err := f(nil, &request{})
			if err != nil {
				t.Fatal(err)
			}
			if again := keyfuncs.JoinKeys(parts...); again != string(key) {
				t.Errorf("Join of %q is %q, JoinKeys %q", parts, key, again)
			}
			if split := keyfuncs.SplitKeys(string(key)); !slices.Equal(split, parts) {
				t.Errorf("Join of %q is %q, which splits into %q", parts, key, split)
			}
			return key
		}
		for _, any := range []string{a, b, c, d} {
			if parts := keyfuncs.SplitKeys(any); parts != nil && keyfuncs.JoinKeys(parts...) != any {
				t.Errorf("%q splits into %q, which is another key", any, parts)
			}
		}
		if (a != c || b != d) && bytes.Equal(join(a, b), join(c, d)) {
			t.Errorf("(%q, %q) and (%q, %q) are one key", a, b, c, d)
		}
		if len(a) > 0 && bytes.Equal(join(a), join(a, b)) && b != "" {
			t.Errorf("(%q) and (%q, %q) are one key", a, a, b)
		}
	})
}

func TestSplitKeysOfWhatIsNoKeyOfJoin(t *testing.T) {
	for _, key := range []string{
		"", "a", "abc", "192.0.2.1",
		"\x00\x00\x00\x01",                         // a part of one byte that is missing
		"a\x00\x00\x00\x02",                        // of two
		"ab\x00\x00\x00\x01",                       // a byte before the first part
		"ab\xff\xff\xff\xff", "ab\x80\x00\x00\x00", // lengths that are negative in 32 bits
	} {
		if parts := keyfuncs.SplitKeys(key); parts != nil {
			t.Errorf("%q splits into %q", key, parts)
		}
	}
}

func ExampleJoin() {
	r := &request{remote: "192.0.2.1:80", cookies: map[string]string{"session": "s1"}}
	show(keyfuncs.Join(keyfuncs.ClientIP(), keyfuncs.Cookie("session")), r)
	// Output: "192.0.2.1\x00\x00\x00\ts1\x00\x00\x00\x02" <nil>
}

func ExampleJoinKeys() {
	hit := core.Hit{Rule: "login", Key: keyfuncs.JoinKeys("192.0.2.1", "alice")}
	fmt.Printf("%q\n", hit.Key)
	// Output: "192.0.2.1\x00\x00\x00\talice\x00\x00\x00\x05"
}

func ExampleSplitKeys() {
	key := "192.0.2.1\x00\x00\x00\talice\x00\x00\x00\x05"
	fmt.Println(strings.Join(keyfuncs.SplitKeys(key), " "))
	// Output: 192.0.2.1 alice
}

// PathValue and Route write one line about requests without a value, and none about others.
func TestTheFirstRequestWithoutAValueOrARouteIsLogged(t *testing.T) {
	for want, key := range map[string]core.KeyFunc{"PathValue finds no value.*parameter=id": keyfuncs.PathValue("id"), "Route finds no matched route": keyfuncs.Route()} {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		for i, step := range []struct {
			value string
			lines int
		}{{"7", 0}, {"", 1}, {"", 1}, {"8", 1}} {
			got, err := key(nil, logged{&request{route: step.value, params: map[string]string{"id": step.value}}, log})
			if err != nil || string(got) != step.value {
				t.Errorf("request %d: %q, %v", i, got, err)
			}
			if lines := len(regexp.MustCompile(want).FindAllString(text.String(), -1)); lines != step.lines || lines != strings.Count(text.String(), "level=ERROR") {
				t.Errorf("after request %d: %d lines, want %d:\n%s", i, lines, step.lines, text.String())
			}
		}
	}
}
