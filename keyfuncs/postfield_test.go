package keyfuncs_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/usernames"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

const (
	formType      = "application/x-www-form-urlencoded"
	multipartType = "multipart/form-data; boundary=XX"
	jsonType      = "application/json"
)

func part(disposition, value string) string {
	return "--XX\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + value + "\r\n"
}

func TestPostField(t *testing.T) {
	const bad = "<bad request>"
	for _, row := range []struct{ name, contentType, body, want string }{
		{"form", formType, "a=b&username=alice&c=d", "alice"},
		{"form, the only field", formType, "username=alice", "alice"},
		{"form, escapes", formType, "user%6eame=al%20ice+x", "al ice x"},
		{"form, no value", formType, "username", ""},
		{"form, empty value", formType, "username=", ""},
		{"form, absent", formType, "user=alice", ""},
		{"form, a malformed escape", formType, "username=%zz", bad},
		{"form, a malformed escape in another field", formType, "%zz=%&username=alice", "alice"},
		{"form, a semicolon", formType, "username=alice;x", bad},
		{"form, a semicolon in another field", formType, "a=b;username=bob&username=alice", "alice"},
		{"brackets", formType, "username%5B%5D=alice", "alice"},
		{"brackets inside", formType, "userna[]me=alice", "alice"},
		{"brackets around", formType, "[username]=alice", "alice"},
		{"two spellings", formType, "username=bob&username[]=alice", bad},
		{"two spellings, one of them odd", formType, "USERNAME=bob&[userna[]me]=alice", bad},
		{"a long s and a kelvin sign", formType, "username=bob&u%C5%BFername=alice", bad},
		{"part of a path is another name", formType, "username=alice&a.username=bob&username.a=carol", "alice"},
		{"form, with a charset", formType + "; charset=utf-8", "username=alice", "alice"},
		{"another case", formType, "UserName=alice", "alice"},
		{"form, twice", formType, "username=a&username=b", bad},
		{"form, twice in different case", formType, "username=a&USERNAME=b", bad},
		{"form, twice the same", formType, "username=a&username=a", bad},
		{"10,001 fields", formType, strings.Repeat("a=b&", 10_000) + "username=alice", bad},
		{"multipart", multipartType, part(`name="username"`, "alice") + "--XX--\r\n", "alice"},
		{"multipart, twice", multipartType, part(`name="username"`, "a") + part(`name="Username"`, "b") + "--XX--\r\n", bad},
		{"a file", multipartType, part(`name="username"; filename="f"`, "alice") + "--XX--\r\n", ""},
		{"no end", multipartType, part(`name="other"`, "x") + part(`name="username"`, "alice"), ""},
		{"no end behind the field", multipartType, part(`name="username"`, "alice") + part(`name="x"`, "y"), "alice"},
		{"many parts", multipartType, strings.Repeat(part(`name="x"`, ""), 1001), bad},
		{"a long header", multipartType, "--XX\r\nX: " + strings.Repeat("x", 60_000) + "\r\n", ""},
		{"multipart, no boundary", "multipart/form-data", part(`name="username"`, "alice"), ""},
		{"JSON", jsonType, `{"a":[1,{"username":"x"}],"username":"alice","b":{"username":"y"}}`, "alice"},
		{"JSON, any case of the type", "APPLICATION/JSON", `{"username":"alice"}`, "alice"},
		{"JSON of another type", "application/vnd.api+json", `{"username":"alice"}`, "alice"},
		{"no JSON", "text/plain", `{"username":"alice"}`, ""},
		{"no type", "", `{"username":"alice"}`, ""},
		{"a malformed type", "application /json", `{"username":"alice"}`, ""},
		{"UTF-16", jsonType + ";charset=utf-16", "\xfe\xff\x00{\x00}", ""},
		{"JSON, twice", jsonType, `{"username":"bob","username":"alice"}`, bad},
		{"JSON, twice in different case", jsonType, `{"username":"bob","USERNAME":"alice"}`, bad},
		{"JSON, twice, once without a value", jsonType, `{"username":null,"username":"alice"}`, bad},
		{"JSON, twice, once an object", jsonType, `{"username":{},"username":"alice"}`, bad},
		{"JSON, twice, once an array", jsonType, `{"username":"alice","username":[]}`, bad},
		{"parameters that are malformed", formType + "; bad", "username=alice", "alice"},
		{"JSON, escaped name", jsonType, `{"user\u006eame":"alice"}`, "alice"},
		{"a number", jsonType, `{"username":1e309}`, "1e309"},
		{"a boolean", jsonType, `{"username":true}`, "true"},
		{"the other boolean", jsonType, `{"username":false}`, "false"},
		{"a name that is no text", jsonType, `{"username":"alice",1:2}`, ""},
		{"a value that is missing", jsonType, `{"username":}`, ""},
		{"JSON of another kind", "model/gltf+json", `{"username":"alice"}`, ""},
		{"XML of an application", "application/xml", `{"username":"alice"}`, ""},
		{"null", jsonType, `{"username":null}`, ""},
		{"an array", jsonType, `{"username":["alice"]}`, ""},
		{"an object", jsonType, `{"username":{"username":"a"}}`, ""},
		{"a lone surrogate", jsonType, `{"username":"\ud800"}`, "\ufffd"},
		{"deep", jsonType, `{"username":"alice","x":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, ""},
		{"a spelling of a number", jsonType, `{"username":10e-1}`, "1"},
		{"another", jsonType, `{"username":1.00}`, "1"},
		{"a large number", jsonType, `{"username":123456789012345678901234567890}`, "123456789012345678901234567890"},
		{"a fraction", jsonType, `{"username":1.50}`, "1.5"},
		{"JSON, many members elsewhere", jsonType, `{"username":"alice","rows":[` + strings.Repeat(`{"a":1,"b":2},`, 1000) + `0]}`, "alice"},
		{"JSON, many members", jsonType, `{` + strings.Repeat(`"a":1,`, 1001) + `"username":"alice"}`, bad},
		{"multipart, as some clients write it", multipartType, "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\nContent-Transfer-Encoding: 8bit\r\n\r\nalice\r\n--XX--\r\n", "alice"},
		{"multipart, encoded", multipartType, "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=61lice\r\n--XX--\r\n", "alice"},
		{"not deep", jsonType, `{"username":"alice","x":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`, "alice"},
		{"a byte order mark", jsonType, "\ufeff" + `{"username":"alice"}`, ""},
		{"something behind it", jsonType, `{"username":"alice"} x`, ""},
		{"cut off", jsonType, `{"username":"alice"`, ""},
		{"JSON, an array", jsonType, `[{"username":"alice"}]`, ""},
		{"JSON, a text", jsonType, `"username"`, ""},
		{"JSON, nothing", jsonType, ``, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &request{header: headers(), body: row.body}
			if row.contentType != "" {
				r.header = headers("Content-Type", row.contentType)
			}
			key, err := keyfuncs.PostField("username")(nil, r)
			if row.want == bad {
				if !errors.Is(err, core.ErrBadRequest) {
					t.Errorf("key %q, error %v, want a bad request", key, err)
				}
			} else if err != nil || string(key) != row.want {
				t.Errorf("key %q, error %v, want %q", key, err, row.want)
			}
		})
	}
}

// All objects on the path to the field have 1,000 fields together at most.
func TestTheFieldsOfNestedObjectsAreCountedTogether(t *testing.T) {
	f := keyfuncs.PostField("name", keyfuncs.JSONPath("user", "name"))
	members := func(n int) string { return strings.Repeat(`"a":1,`, n) }
	for name, row := range map[string]struct{ body, want string }{
		"few":                    {`{` + members(400) + `"user":{` + members(400) + `"name":"alice"}}`, "alice"},
		"many before and within": {`{` + members(600) + `"user":{` + members(600) + `"name":"alice"}}`, bad},
		"many within and after":  {`{"user":{` + members(600) + `"name":"alice"},` + members(600) + `"b":1}`, bad},
		"many before and after":  {`{` + members(600) + `"user":{"name":"alice"},` + members(600) + `"b":1}`, bad},
	} {
		check(t, name, f, &request{header: headers("Content-Type", jsonType), body: row.body}, row.want)
	}
}

func trimmed(s string) (string, error) { return strings.TrimSpace(s), nil }

func TestPostFieldOptions(t *testing.T) {
	form := func(body string) *request { return &request{header: headers("Content-Type", formType), body: body} }
	long := form("username=alice&pad=" + strings.Repeat("x", 100))
	if got := keyOf(t, keyfuncs.PostField("username", keyfuncs.MaxBody(100)), long); got != "" {
		t.Errorf("a field of a body that is too long: %q", got)
	}
	if got := keyOf(t, keyfuncs.PostField("username", keyfuncs.MaxBody(len(long.body))), long); got != "alice" {
		t.Errorf("a body of just the length: %q", got)
	}
	if got := keyOf(t, keyfuncs.PostField("user[name]"), form("user%5Bname%5D=alice")); got != "alice" {
		t.Errorf("user[name]: %q", got)
	}
	nested := &request{header: headers("Content-Type", jsonType), body: `{"name":"x","user":{"name":"alice"}}`}
	if got := keyOf(t, keyfuncs.PostField("name", keyfuncs.JSONPath("user", "name")), nested); got != "alice" {
		t.Errorf("a path: %q", got)
	}
	nested.body = `{"user":{"name":"x"},"user":{"name":"alice"}}`
	if _, err := keyfuncs.PostField("name", keyfuncs.JSONPath("user", "name"))(nil, nested); !errors.Is(err, core.ErrBadRequest) {
		t.Errorf("an object of the path twice: %v", err)
	}

	normal := keyfuncs.PostField("username", keyfuncs.Normalize(trimmed), keyfuncs.Normalize(usernames.Fold))
	for _, spelling := range []string{"alice", "ALICE", "+aLiCe%20", "%09alice%0D%0A", "%E2%80%A8alice%C2%85"} {
		if got, want := keyOf(t, normal, form("username="+spelling)), keyOf(t, normal, form("username=alice")); got != want {
			t.Errorf("%q has the key %q, want %q", spelling, got, want)
		}
	}
	if got := keyOf(t, normal, form("username=%20%ff%20")); got != " \xff " {
		t.Errorf("what cannot be normalised: %q", got)
	}

	compressed := form("username=alice")
	compressed.header.Set("Content-Encoding", "gzip")
	compressed.bodyErr = errors.New("was read")
	if got := keyOf(t, keyfuncs.PostField("username"), compressed); got != "" {
		t.Errorf("a compressed body: %q", got)
	}
	broken := form("username=alice")
	broken.bodyErr = &net.OpError{Op: "read", Addr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9)}, Err: errors.New("connection reset")}
	if _, err := keyfuncs.PostField("username")(nil, broken); !errors.Is(err, core.ErrBadRequest) || strings.Contains(err.Error(), "203.0.113.9") || !strings.Contains(err.Error(), "connection reset") {
		t.Errorf("a body that cannot be read: %v", err)
	}
	twoTypes := form("username=alice")
	twoTypes.header.Add("Content-Type", jsonType)
	if got := keyOf(t, keyfuncs.PostField("username"), twoTypes); got != "alice" {
		t.Errorf("two Content-Type lines, of which handlers read the first: %q", got)
	}
	for _, body := range []string{"a=b", "username=", "username=++"} {
		f := keyfuncs.PostField("username", keyfuncs.RequireValue(), keyfuncs.Normalize(trimmed))
		if _, err := f(nil, form(body)); !errors.Is(err, core.ErrBadRequest) {
			t.Errorf("RequireValue of %q: %v", body, err)
		}
	}
	nested.body = `{"a":["x"]}`
	if got := keyOf(t, keyfuncs.PostField("name", keyfuncs.JSONPath("a", "b")), nested); got != "" {
		t.Errorf("a path that ends before: %q", got)
	}
}

// If url.ParseQuery reads a body without an error and the field is given once, PostField reads
// the same value.
func FuzzForm(f *testing.F) {
	for _, s := range []string{"username=alice", "a=b&user%6eame=%20+", "%zz=1&username", "username=a&username=b", "&&=&username=;"} {
		f.Add(s)
	}
	key := keyfuncs.PostField("username")
	f.Fuzz(func(t *testing.T, body string) {
		got, err := key(nil, &request{header: headers("Content-Type", formType), body: body})
		values, parseErr := url.ParseQuery(body)
		if parseErr != nil || len(body) > keyfuncs.DefaultMaxBody || len(values) > 900 {
			return
		}
		n, want := 0, ""
		for name, v := range values {
			if strings.ContainsAny(name, "[].") {
				return // another spelling: see TestPostField
			}
			if strings.EqualFold(name, "username") {
				n, want = n+len(v), v[0]
			}
		}
		switch {
		case n > 1 && !errors.Is(err, core.ErrBadRequest):
			t.Errorf("%q: the field stands %d times: key %q, error %v", body, n, got, err)
		case n == 1 && (err != nil || string(got) != want):
			t.Errorf("%q: key %q, error %v, want %q", body, got, err, want)
		case n == 0 && string(got) != "":
			t.Errorf("%q: key %q", body, got)
		}
	})
}

// PostField reads the value that encoding/json decodes into a struct.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"username":"alice"}`, `{"username":1,"x":[]}`, `[]`, `{"username":{}}`, `{"username":"a","username":"b"}`, `{"a":`} {
		f.Add(s)
	}
	key := keyfuncs.PostField("username")
	f.Fuzz(func(t *testing.T, body string) {
		got, err := key(nil, &request{header: headers("Content-Type", jsonType), body: body})
		if err != nil && !errors.Is(err, core.ErrBadRequest) {
			t.Errorf("%q: error %v", body, err)
		}
		var v struct{ Username string }
		if err != nil || json.Unmarshal([]byte(body), &v) != nil || v.Username == "" || string(got) == "" {
			return
		}
		if string(got) != v.Username {
			t.Errorf("%q: key %q, the handler sees %q", body, got, v.Username)
		}
	})
}

func FuzzMultipart(f *testing.F) {
	f.Add(part(`name="username"`, "alice")+"--XX--\r\n", "XX")
	f.Add(part(`name="username"; filename=""`, "alice"), "XX")
	f.Add("--XX\r\n\r\n--XX--", "XX")
	key := keyfuncs.PostField("username")
	f.Fuzz(func(t *testing.T, body, boundary string) {
		_, err := key(nil, &request{header: headers("Content-Type", "multipart/form-data; boundary="+boundary), body: body})
		if err != nil && !errors.Is(err, core.ErrBadRequest) {
			t.Errorf("error %v", err)
		}
	})
}

func ExamplePostField() {
	login := keyfuncs.PostField("username", keyfuncs.Normalize(func(s string) (string, error) {
		return strings.ToLower(strings.TrimSpace(s)), nil
	}))
	show(login, &request{header: headers("Content-Type", formType), body: "username=+Alice&password=x"})
	show(login, &request{header: headers("Content-Type", jsonType), body: `{"username":"alice"}`})
	show(login, &request{header: headers("Content-Type", "text/plain"), body: "alice"})
	// Output:
	// "alice" <nil>
	// "alice" <nil>
	// "" <nil>
}
