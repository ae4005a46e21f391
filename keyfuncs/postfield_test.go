package keyfuncs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
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
	for _, row := range []struct{ name, contentType, body, want string }{
		{"form", formType, "a=b&username=alice&c=d", "alice"},
		{"a form that begins as JSON", formType, `{"x":"&username=alice&"}`, ""},
		{"form, escapes", formType, "user%6eame=al%20ice+x", "al ice x"},
		{"form, no value", formType, "username", ""}, {"form, empty value", formType, "username=", ""},
		{"form, absent", formType, "user=alice", ""}, {"form, a malformed escape", formType, "username=%zz", bad},
		{"form, a malformed escape in another field", formType, "%zz=%&username=alice", "alice"},
		{"form, a semicolon", formType, "username=alice;x", bad},
		{"form, an escaped semicolon", formType, "username=alice%3Bx", "alice;x"},
		{"form, a semicolon in another field", formType, "a=b;username=bob&username=alice", "alice"},
		{"brackets", formType, "username%5B%5D=alice", "alice"},
		{"brackets inside", formType, "userna[]me=alice", "alice"},
		{"two spellings", formType, "username=bob&username[]=alice", bad},
		{"two spellings, one of them odd", formType, "USERNAME=bob&[userna[]me]=alice", bad},
		{"a long s and a kelvin sign", formType, "username=bob&u%C5%BFername=alice", bad},
		{"part of a path is another name", formType, "username=alice&a.username=bob&username.a=carol", "alice"},
		{"form, with a charset", formType + "; charset=utf-8", "username=alice", "alice"},
		{"another case", formType, "UserName=alice", "alice"}, {"form, twice", formType, "username=a&username=b", bad},
		{"form, twice in different case", formType, "username=a&USERNAME=b", bad},
		{"multipart", multipartType, part(`name="username"`, "alice") + "--XX--\r\n", "alice"},
		{"multipart, twice", multipartType, part(`name="username"`, "a") + part(`name="Username"`, "b") + "--XX--\r\n", bad},
		{"a file", multipartType, part(`name="username"; filename="f"`, "alice") + "--XX--\r\n", ""},
		{"no end", multipartType, part(`name="other"`, "x") + part(`name="username"`, "alice"), ""},
		{"no end behind the field", multipartType, part(`name="username"`, "alice") + part(`name="x"`, "y"), "alice"},
		{"a long header", multipartType, "--XX\r\nX: " + strings.Repeat("x", 60_000) + "\r\n", ""},
		{"multipart, no boundary", "multipart/form-data", part(`name="username"`, "alice"), ""},
		{"JSON", jsonType, `{"a":[1,{"username":"x"}],"username":"alice","b":{"username":"y"}}`, "alice"},
		{"JSON, any case of the type", "APPLICATION/JSON", `{"username":"alice"}`, "alice"},
		{"JSON of another type", "application/vnd.api+json", `{"username":"alice"}`, "alice"},
		{"no JSON", "text/plain", `{"username":"alice"}`, ""}, {"no type", "", `{"username":"alice"}`, ""},
		{"a malformed type", "application /json", `{"username":"alice"}`, ""},
		{"UTF-16", jsonType + ";charset=utf-16", "\xfe\xff\x00{\x00}", ""},
		{"JSON, twice", jsonType, `{"username":"bob","username":"alice"}`, bad},
		{"JSON, twice in different case", jsonType, `{"username":"bob","USERNAME":"alice"}`, bad},
		{"JSON, twice, once without a value", jsonType, `{"username":null,"username":"alice"}`, bad},
		{"JSON, twice, once an object", jsonType, `{"username":{},"username":"alice"}`, bad},
		{"parameters that are malformed", formType + "; bad", "username=alice", "alice"},
		{"JSON, escaped name", jsonType, `{"user\u006eame":"alice"}`, "alice"},
		{"a boolean", jsonType, `{"username":true}`, "true"},
		{"the other boolean", jsonType, `{"username":false}`, "false"},
		{"a name that is no text", jsonType, `{"username":"alice",1:2}`, ""},
		{"a value that is missing", jsonType, `{"username":}`, ""},
		{"a form that only Fiber reads", formType + "+json", `{"username":"alice"}`, ""},
		{"JSON of another kind", "model/gltf+json", `{"username":"alice"}`, ""},
		{"XML of an application", "application/xml", `{"username":"alice"}`, ""},
		{"null", jsonType, `{"username":null}`, ""}, {"an array", jsonType, `{"username":["alice"]}`, ""},
		{"an object", jsonType, `{"username":{"username":"a"}}`, ""},
		{"a lone surrogate", jsonType, `{"username":"\ud800"}`, "\ufffd"},
		{"deep", jsonType, `{"username":"alice","x":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, ""},
		{"JSON, many members elsewhere", jsonType, `{"username":"alice","rows":[` + strings.Repeat(`{"a":1,"b":2},`, 1000) + `0]}`, "alice"},
		{"multipart, as some clients write it", multipartType, "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\nContent-Transfer-Encoding: 8bit\r\n\r\nalice\r\n--XX--\r\n", "alice"},
		{"multipart, encoded", multipartType, "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=61lice\r\n--XX--\r\n", "alice"},
		{"not deep", jsonType, `{"username":"alice","x":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`, "alice"},
		{"a byte order mark", jsonType, "\ufeff" + `{"username":"alice"}`, ""},
		{"something behind it", jsonType, `{"username":"alice"} x`, ""},
		{"cut off", jsonType, `{"username":"alice"`, ""},
		{"JSON, an array", jsonType, `[{"username":"alice"}]`, ""}, {"JSON, a text", jsonType, `"username"`, ""},
		{"JSON, nothing", jsonType, ``, ""},
	} {
		r := &request{header: headers(), body: row.body}
		if row.contentType != "" {
			r.header = headers("Content-Type", row.contentType)
		}
		check(t, row.name, keyfuncs.PostField("username"), r, row.want)
	}
}

func trimmed(s string) (string, error) { return strings.TrimSpace(s), nil }

func TestPostFieldOptions(t *testing.T) {
	check(t, "user[name]", keyfuncs.PostField("user[name]"), formRequest("user%5Bname%5D=alice"), "alice")
	path, short := keyfuncs.PostField("name", keyfuncs.JSONPath("user", "name")), keyfuncs.PostField("name", keyfuncs.JSONPath("a", "b"))
	for _, row := range []struct {
		name string
		f    core.KeyFunc
		body string
		want string
	}{
		{"a path", path, `{"name":"x","user":{"name":"alice"}}`, "alice"},
		{"a member without a name", path, `{"":"x","user":{"name":"alice"}}`, "alice"},
		{"an object of the path twice", path, `{"user":{"name":"x"},"user":{"name":"alice"}}`, bad},
		{"a path that ends before", short, `{"a":["x"]}`, ""},
	} {
		check(t, row.name, row.f, &request{header: headers("Content-Type", jsonType), body: row.body}, row.want)
	}

	normal := keyfuncs.PostField("username", keyfuncs.Normalize(trimmed), keyfuncs.Normalize(usernames.Fold))
	want := keyOf(t, normal, formRequest("username=alice"))
	for _, spelling := range []string{"ALICE", "+aLiCe%20", "%09alice%0D%0A", "%E2%80%A8alice%C2%85"} {
		check(t, spelling, normal, formRequest("username="+spelling), want)
	}
	check(t, "what cannot be normalised", normal, formRequest("username=%20%ff%20"), " \xff ")

	compressed := formRequest("username=alice")
	compressed.header.Set("Content-Encoding", "gzip")
	compressed.bodyErr = errors.New("was read")
	check(t, "a compressed body", keyfuncs.PostField("username"), compressed, "")
	twoTypes := formRequest("username=alice")
	twoTypes.header.Add("Content-Type", jsonType)
	check(t, "two Content-Type lines, of which handlers read the first", keyfuncs.PostField("username"), twoTypes, "alice")
	required := keyfuncs.PostField("username", keyfuncs.RequireValue(), keyfuncs.Normalize(trimmed))
	for _, body := range []string{"a=b", "username=", "username=++"} {
		check(t, body, required, formRequest(body), bad)
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
		if parseErr != nil || len(body) > keyfuncs.MaxBody || len(values) > 900 {
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

func TestABodyThatCannotBeReceivedIsRefused(t *testing.T) {
	reset := errors.New("connection reset")
	failed := &net.OpError{Op: "read", Addr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 9)}, Err: reset}
	for kind, opts := range map[string][]keyfuncs.PostFieldOption{
		formType: nil, jsonType: nil, multipartType: nil, "application/xml": {keyfuncs.Strict()}, formType + "; x=1": {keyfuncs.Strict()},
	} {
		r := &request{header: headers("Content-Type", kind), body: "username=alice", bodyErr: failed}
		if key, err := keyfuncs.PostField("username", opts...)(nil, r); !errors.Is(err, core.ErrBadRequest) || !errors.Is(err, reset) || strings.Contains(err.Error(), "203.0.113.9") {
			t.Errorf("%s: key %q, error %v", kind, key, err)
		}
	}
}

// This holds for fields, parameters and cookies, whatever the place of the wanted one is.
func Test1000FieldsAreReadAnd1001AreRefused(t *testing.T) {
	body := func(kind, body string) *request { return &request{header: headers("Content-Type", kind), body: body} }
	field := keyfuncs.PostField("username")
	for _, row := range []struct {
		name    string
		f       core.KeyFunc
		request func(before, after int) *request
	}{
		{"a form", field, func(before, after int) *request {
			return body(formType, strings.Repeat("a&", before)+"username=alice"+strings.Repeat("&a", after))
		}},
		{"a multipart form", field, func(before, after int) *request {
			other := part(`name="a"`, "")
			return body(multipartType, strings.Repeat(other, before)+part(`name="username"`, "alice")+strings.Repeat(other, after)+"--XX--\r\n")
		}},
		{"JSON", field, func(before, after int) *request {
			return body(jsonType, "{"+strings.Repeat(`"a":1,`, before)+`"username":"alice"`+strings.Repeat(`,"a":1`, after)+"}")
		}},
		{"a query", keyfuncs.Query("id"), func(before, after int) *request {
			return &request{rawQuery: strings.Repeat("a&", before) + "id=alice" + strings.Repeat("&a", after)}
		}},
		{"cookies", keyfuncs.Cookie("sid"), func(before, after int) *request {
			return &request{header: headers("Cookie", strings.Repeat("a=b; ", before)+"sid=alice"+strings.Repeat("; a=b", after))}
		}},
		{"cookies in two lines", keyfuncs.Cookie("sid"), func(before, after int) *request {
			if before == 0 {
				return &request{header: headers("Cookie", "sid=alice"+strings.Repeat("; a=b", after))}
			}
			return &request{header: headers("Cookie", strings.TrimSuffix(strings.Repeat("a=b; ", before), "; "), "Cookie", "sid=alice"+strings.Repeat("; a=b", after))}
		}},
	} {
		for _, before := range []int{0, 1, 500, 998, 999} {
			check(t, row.name+" of 1000", row.f, row.request(before, 999-before), "alice")
			check(t, row.name+" of 1001", row.f, row.request(before, 1000-before), bad)
			check(t, row.name+" of 1001", row.f, row.request(before+1, 999-before), bad)
		}
	}
	// Empty parts of a form are no fields.
	check(t, "empty parts", field, body(formType, strings.Repeat("&", 5000)+"username=alice&&"), "alice")
}

// A body that is one byte longer is not read.
func TestABodyOfExactlyMaxBodyBytesIsRead(t *testing.T) {
	strict, lenient := keyfuncs.PostField("username", keyfuncs.Strict()), keyfuncs.PostField("username")
	body := "username=alice&" + strings.Repeat("x", keyfuncs.MaxBody-len("username=alice&"))
	check(t, "just the length", strict, formRequest(body), "alice")
	check(t, "just the length, not strict", lenient, formRequest(body), "alice")
	check(t, "one more byte, not strict", lenient, formRequest(body+"x"), "")
	check(t, "one more byte", strict, formRequest(body+"x"), bad)
}

// A path that ends with the JSONPath is the field too, because binders fill embedded structs.
// So is the end of the JSONPath, because Gin fills nested structs in this way.
func TestJSONPathMatchesLongerAndShorterPathsInQueryAndForm(t *testing.T) {
	path := keyfuncs.JSONPath("user", "name")
	strict, lenient := keyfuncs.PostField("login", path, keyfuncs.Strict()), keyfuncs.PostField("login", path)
	for query, want := range map[string][2]string{
		"form.user.name=victim": {bad, "decoy"}, "form[user][name]=victim": {bad, "decoy"}, "a.b.USER.name=victim": {bad, "decoy"}, "x.login=victim": {bad, "decoy"},
		"user.name=victim": {bad, bad}, "login=victim": {bad, bad}, "name=victim": {bad, "decoy"}, "user.name.x=victim": {"decoy", "decoy"}, "form.user=victim": {"decoy", "decoy"},
	} {
		r := &request{rawQuery: query, header: headers("Content-Type", jsonType), body: `{"user":{"name":"decoy"}}`}
		check(t, "?"+query, strict, r, want[0])
		check(t, "?"+query, lenient, r, want[1])
	}
	check(t, "a form", strict, formRequest("login=decoy&form.user.name=victim"), bad)
	check(t, "a form", lenient, formRequest("login=decoy&form.user.name=victim"), "decoy")
}

func formRequest(body string) *request {
	return &request{header: headers("Content-Type", formType), body: body}
}

func ExampleRequireValue() {
	show(keyfuncs.PostField("username", keyfuncs.RequireValue()), formRequest("password=x"))
	// Output: "" floodgate: bad request: the field "username" is missing, or cannot be read
}

// A type that a framework may read and PostField does not is refused.
func ExampleStrict() {
	xml := &request{header: headers("Content-Type", "text/xml"), body: "<form><username>alice</username></form>"}
	show(keyfuncs.PostField("username"), xml)
	show(keyfuncs.PostField("username", keyfuncs.Strict()), xml)
	// Output:
	// "" <nil>
	// "" floodgate: bad request: the field "username" cannot be read: send a form or JSON, not compressed, of at most 64 KiB
}

func ExampleFormsOnly() {
	json := &request{header: headers("Content-Type", jsonType), body: `{"username":"alice"}`}
	show(keyfuncs.PostField("username", keyfuncs.FormsOnly()), json)
	show(keyfuncs.PostField("username", keyfuncs.FormsOnly()), formRequest("username=alice"))
	// Output:
	// "" <nil>
	// "alice" <nil>
}

func ExampleJSONPath() {
	email := keyfuncs.PostField("email", keyfuncs.JSONPath("user", "email"))
	show(email, &request{header: headers("Content-Type", jsonType), body: `{"user":{"email":"a@example.com"}}`})
	// Output: "a@example.com" <nil>
}

func ExampleNormalize() {
	firstLetter := func(s string) (string, error) {
		if s == "" {
			return "", fmt.Errorf("empty")
		}
		return s[:1], nil
	}
	show(keyfuncs.PostField("username", keyfuncs.Normalize(firstLetter)), formRequest("username=alice"))
	// Output: "a" <nil>
}

func TestPostFieldLogsOnceWhyItCannotReadTheBody(t *testing.T) {
	for bodyErr, want := range map[error]string{core.ErrBodyRead: "put the limiter first", requestlog.ErrNoBody: "use a key function that reads the message"} {
		log := defaultLog(t, slog.LevelInfo)
		f := keyfuncs.PostField("username", keyfuncs.Strict())
		for _, kind := range []string{formType, jsonType, multipartType, "application/xml"} {
			_, err := f(nil, &request{header: headers("Content-Type", kind), body: "x", bodyErr: bodyErr})
			var told *core.BadRequestError
			if !errors.As(err, &told) || !strings.Contains(told.Detail, want) {
				t.Errorf("%s: error %v", kind, err)
			}
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "field=username") {
			t.Errorf("%d lines in the log: %s", n, log)
		}
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
