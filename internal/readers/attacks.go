package readers

import (
	"bytes"
	"fmt"
	"strings"
)

// Request writes a request as it is on the wire.
func Request(method, query, contentType string, body []byte, chunked bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s /login?%s HTTP/1.1\r\nHost: a\r\n", method, query)
	if contentType != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", contentType)
	}
	if chunked && len(body) > 0 {
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		return b.Bytes()
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.Bytes()
}

// The types of bodies.
const (
	FormType      = "application/x-www-form-urlencoded"
	MultipartType = "multipart/form-data; boundary=XX"
	JSONType      = "application/json"
)

// Part is a part of a multipart form.
func Part(name, value string) string {
	return "--XX\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
}

// parts is a multipart form of names and values.
func parts(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(Part(pairs[i], pairs[i+1]))
	}
	return b.String() + "--XX--\r\n"
}

// An Attack is a request that hides the victim's name from what is counted.
type Attack struct {
	Name                             string
	Method, Query, ContentType, Body string
}

// Attacks are the attacks on each field. The field name is the member of an object user in JSON.
// The letter U+0130 becomes an i if a handler makes it small, and U+0131 an I if a handler makes it large.
var Attacks = map[string][]Attack{
	"username": {
		{"the query before a form", "POST", "username=victim", FormType, "USERNAME=decoy"},
		{"the query before a multipart form", "POST", "username=victim", MultipartType, parts("username", "decoy")},
		{"the query before JSON", "POST", "username=victim", JSONType, `{"username":"decoy"}`},
		{"the query in capitals", "POST", "USERNAME=victim", FormType, "username=decoy"},
		{"the query alone", "POST", "username=victim", "", ""},
		{"the query of a GET", "GET", "username=victim&password=guess", "", ""},
		{"the query of a HEAD", "HEAD", "username=victim", "", ""},
		{"the query of a PUT", "PUT", "user%6eame=victim", "", ""},
		{"the query of a PATCH", "PATCH", "username[]=victim", "", ""},
		{"the query of a DELETE", "DELETE", "UserName=victim", "", ""},
		{"the query of an OPTIONS", "OPTIONS", "username=victim", "", ""},
		{"the query of a GET with a body", "GET", "username=victim", FormType, "username=decoy"},
		{"a semicolon in the query", "POST", "a=b;username=victim", FormType, "USERNAME=decoy"},
		{"a bad escape in the query", "POST", "%zz=%&username=victim%zz", FormType, "username=decoy"},
		{"10,001 parameters", "POST", strings.Repeat("a&", 10_001) + "username=victim", FormType, "username=decoy"},
		{"brackets behind the name", "POST", "", FormType, "username=decoy&username[]=victim"},
		{"brackets in the name", "POST", "", FormType, "userna[]me=victim&USERNAME=decoy"},
		{"brackets around the name", "POST", "", FormType, "[username]=victim&username=decoy"},
		{"letter case", "POST", "", FormType, "username=decoy&UserName=victim"},
		{"a long s", "POST", "", FormType, "username=decoy&u%C5%BFername=victim"},
		{"a form inside JSON", "POST", "", JSONType, `{"a":"&username=victim&","username":"decoy"}`},
		{"a form inside a multipart form", "POST", "", MultipartType, Part("a", "&username=victim&") + parts("username", "decoy")},
		{"an embedded struct", "POST", "", FormType, "username=decoy&form.username=victim"},
		{"an embedded struct, in brackets", "POST", "", FormType, "form[username]=victim"},
		{"a multipart name in brackets", "POST", "", MultipartType, Part("username", "decoy") + Part("username[]", "victim") + "--XX--"},
		{"twice", "POST", "", FormType, "username=decoy&username=victim"},
		{"10,001 fields", "POST", "", FormType, strings.Repeat("a&", 10_001) + "username=victim"},
		{"a bad escape", "POST", "", FormType, "username=%zz%76ictim"},
		{"a semicolon", "POST", "", FormType, "username=victim;"},
		{"a type that fasthttp reads", "POST", "", FormType + "x", "username=victim"},
		{"another boundary for fasthttp", "POST", "", `multipart/form-data; a="; boundary=YY;"; boundary=XX`, parts("username", "decoy") + strings.ReplaceAll(Part("username", "victim"), "XX", "YY") + "--YY--\r\n"},
		{"a multipart form without an end", "POST", "", MultipartType, Part("username", "victim") + Part("x", "y")},
		{"a quoted-printable value with parts in it", "POST", "", MultipartType, "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nx=0D=0A--XX=0D=0AContent-Disposition: form-data; name=3D\"username\"=0D=0A=0D=0Adecoy=0D=0A--XX--=0D=0A\r\n" + Part("username", "victim") + "--XX--\r\n"},
		{"JSON twice", "POST", "", JSONType, `{"username":"decoy","username":"victim"}`},
		{"JSON in capitals", "POST", "", JSONType, `{"username":"decoy","USERNAME":"victim"}`},
		{"JSON with a long s", "POST", "", JSONType, `{"username":"decoy","u\u017fername":"victim"}`},
		{"JSON with something behind it", "POST", "", JSONType, `{"username":"victim"}{"username":"decoy"}`},
		{"JSON of another type", "POST", "", "application/vnd.api+json", `{"username":"victim"}`},
		{"JSON that Fiber takes for JSON", "POST", "", "text/json", `{"username":"victim"}`},
		{"JSON with a plus", "POST", "", "text/x+json; a", `{"username":"victim"}`},
		{"JSON of no type", "POST", "", "", `{"username":"victim"}`},
		{"JSON as text", "POST", "", "text/plain", `{"username":"victim"}`},
		{"JSON that is a form", "POST", "", FormType, `{"username":"victim","x":"&username=decoy&"}`},
		{"JSON that is a form, behind white space", "POST", "", FormType, "\r\n\t " + `{"username":"victim","x":"&username=decoy&"}`},
		{"JSON before a multipart form", "POST", "", MultipartType, `{"username":"victim"}` + "\r\n" + parts("username", "decoy")},
		{"XML", "POST", "", "application/xml", "<Form><username>victim</username></Form>"},
		{"XML as text", "POST", "", "text/xml; charset=utf-8", "<Form><username>victim</username></Form>"},
		{"YAML", "POST", "", "application/x-yaml", "username: victim"},
		{"YAML, as of late", "POST", "", "application/yaml", "username: victim"},
		{"TOML", "POST", "", "application/toml", "username = 'victim'"},
		{"MessagePack", "POST", "", "application/msgpack", "\x81\xa8username\xa6victim"},
		{"XML as a form", "POST", "", FormType, "<F><username>victim</username><!--&username=d1&--></F>"},
		{"XML as a form, behind the value", "POST", "", FormType, "username=d1<F><username>victim</username></F>"},
		{"YAML as a form", "POST", "", FormType, "username: victim\n#&username=d1"},
		{"YAML as a form, in one line", "POST", "", FormType, "username: victim #&username=d1"},
		{"YAML as a form, in braces", "POST", "", FormType, "--- {username: victim} #&username=d1"},
		{"TOML as a form", "POST", "", FormType, "'username'='victim'\n#&username=d1"},
		{"TOML as a form, in one line", "POST", "", FormType, "'username'='victim'#&username=d1"},
		{"TOML as a form, with a comment", "POST", "", FormType, "username='victim'#d1"},
		{"MessagePack as a form", "POST", "", FormType, "\x81\xa8username\xa6victim&username=d1"},
		{"XML before a multipart form", "POST", "", MultipartType, "<F><username>victim</username></F>\r\n" + Part("username", "d1") + "--XX--\r\n"},
		{"XML in a multipart form", "POST", "", MultipartType, parts("username", "d1", "x", "<F><username>victim</username></F>")},
		{"XML behind a multipart form", "POST", "", MultipartType, Part("username", "d1") + "--XX--\r\n<F><username>victim</username></F>"},
		{"XML with other names in a multipart form", "POST", "", MultipartType, parts("username", "d1", "x", "<F><login>victim</login></F>")},
		{"XML attributes in a multipart form", "POST", "", MultipartType, parts("username", "d1", "x", "<F login='victim'/>")},
		{"XML that breaks off in a multipart form", "POST", "", MultipartType, parts("username", "d1", "x", "<F><a:login xmlns:a='b'>victim</a:login><b>")},
		{"YAML between boundaries that separate documents", "POST", "", "multipart/form-data; boundary=-", strings.ReplaceAll(Part("x", "username: victim")+Part("username", "d1"), "XX", "-") + "-----\r\n"},
		{"protobuf", "POST", "", "application/x-protobuf", "\n\x06victim"},
		{"XML in JSON", "POST", "", JSONType, `{"x":"<F><username>victim</username></F>","username":"d1"}`},
		{"XML with other names in JSON", "POST", "", JSONType, `{"x":"<F><login>victim</login></F>","username":"d1"}`},
		{"an invisible character", "POST", "", FormType, "username=vic%E2%80%8Btim"},
		{"white space around", "POST", "", FormType, "username=%E2%80%A8victim%C2%85%E1%9A%80"},
		{"JSON by the end of the type, a form by its beginning", "POST", "", FormType + "+json", `{"username":"decoy","x":"&username=victim&password=p&"}`},
		{"JSON in another field", "POST", "", FormType, "username=decoy&Form=%7B%22username%22%3A%22victim%22%7D"},
		{"JSON in another part", "POST", "", MultipartType, parts("username", "decoy", "Form", `{"username":"victim"}`)},
		{"YAML in braces behind dots", "POST", "", FormType, `...{"username":"victim","password":"p","a":"&username=decoy&"}`},
		{"two types, a form and a multipart form", "POST", "", FormType + "; boundary=XX", "username=decoy&x=\r\n" + parts("username", "victim")},
		{"two types, a multipart form and a form", "POST", "", MultipartType, "username=victim&x=decoy\r\n" + parts("username", "decoy")},
		{"a multipart form without its parts", "POST", "", MultipartType, "username=victim&x=1"},
		{"a form in the header of a part", "POST", "", MultipartType, "--XX\r\nX: &username=victim&\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\ndecoy\r\n--XX--\r\n"},
		{"a form of the type of a multipart form, and a comma", "POST", "", MultipartType + ", " + FormType, "username=victim&x=1"},
		{"a number that a float64 cannot tell from the next", "POST", "", JSONType, `{"username":9007199254740993}`},
		{"a number with a fraction", "POST", "", JSONType, `{"username":9007199254740993.0}`},
	},
	"user[name]": {
		{"the query before a form", "POST", "user.name=victim", FormType, "user[name]=decoy"},
		{"the last part of the path in the query", "POST", "name=victim", FormType, "user[name]=decoy"},
		{"the query before JSON", "POST", "user[name]=victim", JSONType, `{"user":{"name":"decoy"}}`},
		{"the query in dots", "POST", "user.name=victim", JSONType, `{"user":{"name":"decoy"}}`},
		{"the query in capitals", "POST", "USER[Name]=victim", JSONType, `{"user":{"name":"decoy"}}`},
		{"the query of a GET", "GET", "name=victim", FormType, ""},
		{"two names in the query", "DELETE", "user[name]=decoy&name=victim", "", ""},
		{"the last part of the path", "POST", "", FormType, "user[name]=decoy&name=victim"},
		{"the last part of the path before dots", "POST", "", FormType, "name=victim&user.name=decoy"},
		{"dots beside brackets", "POST", "", FormType, "user[name]=decoy&user.name=victim"},
		{"text behind the bracket", "POST", "", FormType, "user[name]=decoy&user[name]x=victim"},
		{"the last part of the path in a multipart form", "POST", "", MultipartType, parts("user[name]", "decoy", "Name", "victim", "name", "victim")},
		{"empty brackets", "POST", "", MultipartType, parts("user[name]", "decoy", "user[][name]", "victim")},
		{"an object twice", "POST", "", JSONType, `{"user":{"name":"decoy"},"User":{"name":"victim"}}`},
		{"a member beside an object", "POST", "", JSONType, `{"user[name]":"decoy","user":{"name":"victim"}}`},
		{"an object beside a member", "POST", "", JSONType, `{"user":{"name":"victim"},"user[name]":"decoy"}`},
	},
	"name": {
		{"the query of the same name", "POST", "name=victim", JSONType, `{"user":{"name":"decoy"}}`},
		{"the query of the same path", "POST", "user[name]=victim", JSONType, `{"user":{"name":"decoy"}}`},
		{"the query of the same path in dots", "POST", "user.name=victim", JSONType, `{"user":{"name":"decoy"}}`},
		{"the query alone", "POST", "name=victim", "", ""},
	},
	"mail": {
		{"a capital I with a dot", "POST", "", JSONType, `{"mail":"decoy","ma\u0130l":"victim"}`},
		{"a capital I with a dot in a form", "POST", "", FormType, "mail=decoy&MA%C4%B0L=victim"},
		{"a small i without a dot", "POST", "", JSONType, `{"mail":"decoy","ma\u0131l":"victim"}`},
		{"a small i without a dot in a form", "POST", "", FormType, "mail=decoy&ma%C4%B1l=victim"},
		{"a small i without a dot in the query", "POST", "ma%C4%B1l=victim", FormType, "mail=decoy"},
	},
}

// Ordinary are requests of each field that are not refused. The name in them is alice.
var Ordinary = map[string][]Attack{
	"username": {
		{"a form", "POST", "", FormType, "username=alice&password=x"},
		{"a form with a character set", "POST", "next=%2Fhome&user=x", FormType + "; charset=utf-8", "password=x&username=+Alice+"},
		{"a multipart form", "POST", "", MultipartType, parts("password", "x", "username", "alice")},
		{"a boundary in quotes", "POST", "", `multipart/form-data; boundary="XX"`, Part("username", "alice") + "--XX--"},
		{"JSON", "POST", "", JSONType, `{"username":"alice"}`},
	},
	"user[name]": {
		{"a form", "POST", "", FormType, "user[name]=alice"},
		{"JSON", "POST", "", JSONType, `{"user":{"name":"alice"}}`},
	},
	"name": {{"JSON", "POST", "", JSONType, `{"user":{"name":"alice"}}`}},
	"mail": {{"a form", "POST", "", FormType, "mail=alice"}, {"JSON", "POST", "", JSONType, `{"mail":"alice"}`}},
}
