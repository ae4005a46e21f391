package keyfuncs_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestStrict(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	xml := "<a><username>victim</username></a>"
	for _, row := range []struct{ name, contentType, body, want string }{
		{"a form", formType, "username=alice", "alice"}, {"JSON", jsonType, `{"username":"alice"}`, "alice"},
		{"JSON without the field", jsonType, `{"a":1}`, ""},
		{"multipart", multipartType, part(`name="username"`, "alice") + "--XX--\r\n", "alice"},
		{"nothing", "", "", ""}, {"an empty form", formType, "", ""}, {"empty JSON", jsonType, "", ""},
		{"XML", "application/xml", xml, bad}, {"XML as text", "text/xml; charset=utf-8", xml, bad},
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
		{"an embedded struct", formType, "credentials.username=alice", "alice"},
		{"an embedded struct beside the field", formType, "username=decoy&credentials[username]=victim", bad},
		{"JSON of one byte", jsonType, "x", bad},
		{"a part that cannot be decoded", multipartType, "--XX\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\x01\r\n" + part(`name="username"`, "alice") + "--XX--\r\n", bad},
		{"a boundary that only fasthttp finds", `multipart/form-data; a="; boundary=XX;"`, part(`name="username"`, "victim") + "--XX--\r\n", bad},
		{"another boundary for fasthttp", `multipart/form-data; a="; boundary=YY;"; boundary=XX`, part(`name="username"`, "decoy") + "--XX--\r\n", bad},
		{"one boundary for all, in capitals", `Multipart/Form-Data; x=1;   BOUNDARY="XX"`, part(`name="username"`, "alice") + "--XX--\r\n", "alice"},
		{"a long body", formType, "username=alice&pad=" + strings.Repeat("x", 64<<10), bad},
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
		{"the last part in a JSON object", path, "", "user[name]=decoy&x=%7B%22name%22%3A%22victim%22%7D", bad},
		{"text behind the path", path, "", "user[name]=decoy&user[name]x=victim", bad},
		{"another object", path, "", "user[name]=decoy&other[name]=alice", "decoy"}, {"another member", path, "", "user[name]=decoy&user[id]=7", "decoy"},
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

// Decoders of YAML and TOML give these bytes a meaning. Browsers and libraries escape them.
func TestStrictRefusesUnescapedBytesThatOtherDecodersReadInAForm(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	for c := range 0x100 {
		control, high := c < ' ' || c == 0x7f, c >= 0x80
		for _, row := range []struct {
			body    string
			refused bool
		}{
			{"username=alice&x=y%sz", control}, {"username=alice&x=y%s", control},
			{"username=alice&x=y:%s", control || c == ' ' || high}, // a mapping
			{"username=alice&x=y{%s", control || c == ':'}, {"username=alice&x=y<%s", control || c == '>'},
			{"username=alice&x=y<z%s", control || c == '>'}, {"%s=x&username=alice", control || high || c == '{'},
			{"password=%sx&username=alice", control || strings.ContainsRune("\"'{[#", rune(c))}, // a value or a comment of TOML
			{"password=  %s&username=alice", control || strings.ContainsRune("\"'{[#", rune(c))},
		} {
			want := "alice"
			if row.refused {
				want = bad
			}
			body := fmt.Sprintf(row.body, string([]byte{byte(c)}))
			check(t, fmt.Sprintf("%q", body), f, formRequest(body), want)
		}
	}
}

// Programs write boundaries with the other characters.
func TestStrictRefusesBoundariesThatMeanSomethingInYAMLOrTOML(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	const accepted = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'()+_,-./?"
	for c := rune(' '); c < 0x7f; c++ {
		if c == '"' || c == '\\' {
			continue // they end or escape in the header
		}
		for _, boundary := range []string{string(c), string(c) + "x", "x" + string(c) + "x"} {
			want := bad
			if strings.ContainsRune(accepted, c) && boundary != "-" { // which makes the line ---

				want = "alice"
			}
			body := "--" + boundary + "\r\nContent-Disposition: form-data; name=username\r\n\r\nalice\r\n--" + boundary + "--\r\n"
			check(t, boundary, f, &request{header: headers("Content-Type", `multipart/form-data; boundary="`+boundary+`"`), body: body}, want)
		}
	}
}

func TestStrictRefusesWhatOtherDecodersRead(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict(), keyfuncs.RequireValue())
	xml := "<F><username>victim</username></F>"
	part := "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nd1\r\n"
	for _, row := range []struct{ name, kind, body, want string }{
		{"TOML, a number", formType, "username=1 #2", bad}, {"TOML, a value alone", formType, "username='victim'", bad},
		{"TOML, a table", formType, "username={x='victim'}", bad},
		{"quotes that are not the first value", formType, `username=d1&password="x"`, "d1"},
		{"no value", formType, "password=&username=d1", "d1"},
		{"an angle bracket that closes nothing", formType, "username=alice&password=a>b", "alice"},
		{"YAML, a brace behind a character of several bytes", formType, "x\u2000{username:victim}&username=d1", bad},
		{"XML in a part", multipartType, strings.Replace(part, "d1", xml, 1) + "--XX--\r\n", bad},
		{"a byte that is not UTF-8", jsonType, "{\"username\":\"victim\xff\"}", bad},
		{"half a surrogate", jsonType, `{"username":"victim\ud800"}`, bad},
		{"a surrogate pair", jsonType, `{"username":"\ud83d\ude00"}`, "😀"},
		{"a capital I with a dot", jsonType, `{"username":"d1","username\u0130":"victim"}`, "d1"},
		{"a password that nothing escapes", formType, "username=alice&password=p\"w:<3 #{é", "alice"},
		{"a password with a hash", formType, "password=x&username=alice#1", "alice#1"}, {"a hash in the second field", formType, "x&username=d1#2", "d1#2"},
		{"XML, an attribute", multipartType, strings.Replace(part, "d1", "<F login='victim'/>", 1) + "--XX--\r\n", bad},
		{"XML with a charset", multipartType, strings.Replace(part, "d1", `<?xml version="1.0" encoding="latin1"?>`+xml, 1) + "--XX--\r\n", bad},
		{"XML, a comment", multipartType, strings.Replace(part, "d1", "<F><!--victim--></F>", 1) + "--XX--\r\n", bad},
		{"XML, text before an element", multipartType, strings.Replace(part, "d1", "<F>victim<b> </b></F>", 1) + "--XX--\r\n", bad},
		{"XML in JSON", jsonType, `{"username":"d1","x":"<F>victim</F>"}`, bad},
		{"XML in JSON, escaped", jsonType, `{"username":"d1","x":"\u003cF>victim\u003c/F>"}`, "d1"},
		{"angle brackets that are no XML", multipartType, "\r\n" + strings.Replace(part, "d1", "<3> & a<b>c <", 1) + "--XX--\r\n", "<3> & a<b>c <"},
		{"tags without text", multipartType, strings.Replace(part, "d1", "<b/> <i>\r\n</i>", 1) + "--XX--\r\n", "<b/> <i>\r\n</i>"},
		{"a YAML document before the first part", multipartType, "--- {username: victim}\r\n" + part + "--XX--\r\n", bad},
		{"the boundary of a browser", "multipart/form-data; boundary=----WebKitFormBoundaryAZaz09", strings.ReplaceAll(part, "XX", "----WebKitFormBoundaryAZaz09") + "------WebKitFormBoundaryAZaz09--\r\n", "d1"},
	} {
		r := &request{header: headers("Content-Type", row.kind), body: row.body}
		check(t, row.name, f, r, row.want)
		if _, err := keyfuncs.PostField("username")(nil, r); err != nil && strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: not strict: error %v", row.name, err)
		}
	}
	email := keyfuncs.PostField("email", keyfuncs.Strict())
	check(t, "i with a dot", email, &request{header: headers("Content-Type", jsonType), body: `{"email":"d1","ema\u0130l":"victim"}`}, bad)
	check(t, "i without a dot", email, &request{header: headers("Content-Type", formType), body: "email=d1&ema%C4%B1l=victim"}, bad)
	path := keyfuncs.PostField("user", keyfuncs.Strict(), keyfuncs.JSONPath("user", "name"))
	check(t, "the form's name beside the path", path, &request{rawQuery: "user=victim", header: headers("Content-Type", jsonType), body: `{"user":{"name":"d1"}}`}, bad)
	check(t, "the path beside the form's name", path, &request{header: headers("Content-Type", formType), body: "user=d1&user[name]=victim"}, bad)
	check(t, "the path in the query beside a form", path, &request{rawQuery: "user.name=victim", header: headers("Content-Type", formType), body: "user=d1"}, bad)
}

// If the handler has a struct or a map for the other field, Gin reads its value as JSON.
func TestStrictRefusesTheNameInTheJSONOfAnotherField(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	lenient := keyfuncs.PostField("username")
	for _, row := range []struct{ name, value, want string }{
		{"a member", `{"username":"victim"}`, bad},
		{"white space and another member", " \r\n\t{ \"a\" : [ {}, 1 , \"username\" ] , \"UserName\" : \"victim\" }", bad},
		{"deeper", `{"a":{"b":[{"c":null,"username":"victim"}]}}`, bad},
		{"before an error", `{"username":"victim",`, bad}, {"in other letters", "{\"u\u017fername\":\"victim\"}", bad},
		{"as a value", `{"a":"username","b":["username",{"c":"username"}]}`, "decoy"},
		{"behind an error", `{"a":,"username":"victim"}`, "decoy"},
		{"behind the object", `{"a":1} {"username":"victim"}`, "decoy"},
		{"an array", `[{"username":"victim"}]`, "decoy"}, {"a password", `{"}[`, "decoy"},
		{"another password", `{username`, "decoy"},
	} {
		form := &request{header: headers("Content-Type", formType), body: "username=decoy&User=" + url.QueryEscape(row.value)}
		check(t, row.name, f, form, row.want)
		check(t, row.name+", not strict", lenient, form, "decoy")
		part := func(name, more, value string) string {
			return "--XX\r\nContent-Disposition: form-data; name=\"" + name + "\"" + more + "\r\n\r\n" + value + "\r\n"
		}
		parts := &request{header: headers("Content-Type", multipartType), body: part("username", "", "decoy") + part("User", "", row.value) + "--XX--\r\n"}
		check(t, row.name+", multipart", f, parts, row.want)
		check(t, row.name+", multipart, not strict", lenient, parts, "decoy")
		file := &request{header: headers("Content-Type", multipartType), body: part("username", "", "decoy") + part("User", "; filename=a.json", row.value) + "--XX--\r\n"}
		check(t, row.name+", a file", f, file, "decoy")
	}
}

// From 2^53 on, a float64 does not hold every whole number.
func TestStrictRefusesNumbersThatAreNotWholeOrReach2To53(t *testing.T) {
	strict, lenient := keyfuncs.PostField("id", keyfuncs.Strict()), keyfuncs.PostField("id")
	for _, row := range []struct{ number, strict, lenient string }{
		{"9007199254740991", "9007199254740991", "9007199254740991"},
		{"9007199254740991.0", bad, "9007199254740991"}, {"9007199254740992", bad, "9007199254740992"},
		{"9007199254740993", bad, "9007199254740993"}, {"9007199254740992.0", bad, "9.007199254740992e+15"},
		{"9.007199254740991e15", bad, "9007199254740991"},
		{"-9007199254740991", "-9007199254740991", "-9007199254740991"},
		{"-9007199254740992", bad, "-9.007199254740992e+15"},
		{"1e400", bad, "1e400"}, {"-1e400", bad, "-1e400"}, {"0", "0", "0"}, {"-0", bad, "0"}, {"9", "9", "9"}, {"-9.50", bad, "-9.5"}, {"1e2", bad, "100"},
	} {
		r := &request{header: headers("Content-Type", jsonType), body: `{"id":` + row.number + `}`}
		check(t, row.number, strict, r, row.strict)
		check(t, row.number, lenient, r, row.lenient)
	}
}
