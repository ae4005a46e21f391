package keyfuncs_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestStrict(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	xml := "<a><username>victim</username></a>"
	for _, row := range []struct{ name, contentType, body, want string }{
		{"a form", formType, "username=alice", "alice"},
		{"a form without the field", formType, "a=b", ""},
		{"JSON", jsonType, `{"username":"alice"}`, "alice"},
		{"JSON without the field", jsonType, `{"a":1}`, ""},
		{"JSON, null", jsonType, `{"username":null}`, ""},
		{"multipart", multipartType, part(`name="username"`, "alice") + "--XX--\r\n", "alice"},
		{"nothing", "", "", ""},
		{"nothing, of a type", "application/xml", "", ""},
		{"XML", "application/xml", xml, bad},
		{"XML as text", "text/xml; charset=utf-8", xml, bad},
		{"YAML", "application/x-yaml", "username: victim", bad},
		{"TOML", "application/toml", "username = 'victim'", bad},
		{"MessagePack", "application/msgpack", "\x81\xa8username\xa6victim", bad},
		{"protobuf", "application/x-protobuf", "\n\x06victim", bad},
		{"JSON that Fiber reads", "text/json", `{"username":"victim"}`, bad},
		{"JSON of no type", "", `{"username":"victim"}`, bad},
		{"a form that only Fiber reads", formType + "x", "username=victim", bad},
		{"JSON that is a form", formType, `{"username":"victim","x":"&username=decoy&"}`, bad},
		{"JSON before a multipart form", multipartType, " \r\n{\"username\":\"victim\"}\r\n" + part(`name="username"`, "decoy") + "--XX--\r\n", bad},
		{"JSON with a form in it", jsonType, `{"a":"&username=victim&","username":"decoy"}`, bad},
		{"JSON with another form in it", jsonType, `{"a":"&user=x&","username":"alice"}`, "alice"},
		{"a multipart form with a form in it", multipartType, part(`name="a"`, "x&USERNAME=victim") + part(`name="username"`, "decoy") + "--XX--\r\n", bad},
		{"malformed JSON", jsonType, `{"username":"victim"`, bad},
		{"two JSON values", jsonType, `{"username":"victim"}{}`, bad},
		{"JSON, an array", jsonType, `[{"username":"victim"}]`, bad},
		{"an array of one", jsonType, `{"username":["victim"]}`, bad},
		{"an object", jsonType, `{"username":{"a":"victim"}}`, bad},
		{"a file", multipartType, part(`name="username"; filename="f"`, "victim") + "--XX--\r\n", bad},
		{"multipart without an end", multipartType, part(`name="username"`, "alice") + part(`name="x"`, "victim"), bad},
		{"multipart without a boundary", "multipart/form-data", part(`name="username"`, "victim"), bad},
		{"a boundary that Fiber reads otherwise", `multipart/form-data; a="; boundary=YY;"; boundary=XX`, part(`name="username"`, "alice") + "--XX--\r\n", bad},
		{"an embedded struct", formType, "credentials.username=alice", "alice"},
		{"an embedded struct beside the field", formType, "username=decoy&credentials[username]=victim", bad},
		{"a form without a body", formType, "", ""},
		{"JSON without a body", jsonType, "", ""},
		{"a multipart form without a body", multipartType, "", ""},
		{"JSON of one byte", jsonType, "x", bad},
		{"a part that cannot be decoded", multipartType, "--XX\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\x01\r\n" + part(`name="username"`, "alice") + "--XX--\r\n", bad},
		{"a name that is no text", jsonType, `{"username":"alice",1:2}`, bad},
		{"a value that is missing", jsonType, `{"username":}`, bad},
		{"a long body", formType, "username=alice&pad=" + strings.Repeat("x", keyfuncs.DefaultMaxBody), bad},
	} {
		r := &request{header: http.Header{}, body: row.body}
		if row.contentType != "" {
			r.header.Set("Content-Type", row.contentType)
		}
		check(t, row.name, f, r, row.want)
	}
	compressed := formRequest("username=victim")
	compressed.header.Set("Content-Encoding", "gzip")
	check(t, "a compressed body", f, compressed, bad)
	compressed.header["Content-Encoding"] = []string{"identity", "gzip"}
	check(t, "a body that the second line says is compressed", f, compressed, bad)
	compressed.header["Content-Encoding"] = []string{"identity", "Identity"}
	check(t, "a body that two lines say is not compressed", f, compressed, "victim")
	nested := keyfuncs.PostField("name", keyfuncs.Strict(), keyfuncs.JSONPath("user", "name"))
	for body, want := range map[string]string{`{"user":[{"name":"victim"}]}`: bad, `{"user":{"name":["victim"]}}`: bad, `{"user":1}`: "", `{"user":{"name":"alice"}}`: "alice"} {
		check(t, body, nested, &request{header: headers("Content-Type", jsonType), body: body}, want)
	}
}

// Gin's binder reads the last part of a path into the field of a nested struct.
func TestStrictReadsTheEndOfAPathAsTheField(t *testing.T) {
	path, deeper := keyfuncs.PostField("user[name]", keyfuncs.Strict()), keyfuncs.PostField("login", keyfuncs.Strict(), keyfuncs.JSONPath("form", "user", "name"))
	for _, row := range []struct {
		name        string
		key         core.KeyFunc
		query, body string
		want        string
	}{
		{"the path", path, "", "user[name]=alice&password=x", "alice"},
		{"the path and another field", path, "", "user[name]=alice&username=x&user=y&surname=z", "alice"},
		{"the last part alone", path, "", "name=alice", "alice"},
		{"the last part beside the path", path, "", "user[name]=decoy&name=victim", bad},
		{"the last part before the path", path, "", "NAME=victim&user.name=decoy", bad},
		{"another object", path, "", "user[name]=decoy&other[name]=alice", "decoy"},
		{"the last part in the query", path, "name=victim", "user[name]=decoy", bad},
		{"the last part in the query, no body", path, "name=victim", "", bad},
		{"the last part of the path in JSON", deeper, "", "login=decoy&Name=victim", bad},
		{"the last two parts of the path in JSON", deeper, "", "login=decoy&user[name]=victim", bad},
	} {
		r := formRequest(row.body)
		r.rawQuery = row.query
		check(t, row.name, row.key, r, row.want)
	}
	lenient := keyfuncs.PostField("user[name]")
	check(t, "without Strict", lenient, formRequest("user[name]=alice&name=Alice+Smith"), "alice")
}

// Gin's PostFormMap ignores what follows the bracket.
func TestStrictReadsANameWithTextBehindItsBracket(t *testing.T) {
	f := keyfuncs.PostField("user[name]", keyfuncs.Strict())
	for body, want := range map[string]string{
		"user[name]=alice": "alice", "user[name]=alice&user[name]x=victim": bad, "user[name]x=victim": "victim", "user[name]=alice&user[names]=victim": "alice",
	} {
		check(t, body, f, formRequest(body), want)
	}
}

// A name of brackets and dots alone is no other spelling of the field.
func TestStrictTakesANameOfBracketsForItself(t *testing.T) {
	for _, other := range []string{"[]", ".", "[].", "]"} {
		if got := keyOf(t, keyfuncs.PostField("username", keyfuncs.Strict()), formRequest("username=alice&"+other+"=x")); got != "alice" {
			t.Errorf("beside %s: %q, want alice", other, got)
		}
		if got := keyOf(t, keyfuncs.PostField(other, keyfuncs.Strict()), formRequest("username=x&"+other+"=alice")); got != "alice" {
			t.Errorf("%s: %q, want alice", other, got)
		}
	}
}
