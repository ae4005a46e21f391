package adaptertest

import "strings"

// hiding is a request by which an attacker guesses the victim's password while
// another name is to be counted, which is new each time or one of several. $v is
// the victim's name, of 11 bytes, and $i the number of the guess; see guess for
// the others.
type hiding struct{ name, method, query, contentType, body string }

// hidden are such requests for the field username.
var hidden = []hiding{
	{"the query beside a form", "POST", "?username=$v", formType, "USERNAME=d$i"},
	{"the query in capitals", "POST", "?USERNAME=$v", formType, "username=d$i"},
	{"the query beside a multipart form", "POST", "?username=$v", multipartType, multipartBody("username", "d$i")},
	{"the query beside JSON", "POST", "?username=$v", jsonType, `{"username":"d$i"}`},
	{"a GET", "GET", "?username=$v&i=$i", "", ""},
	{"a HEAD", "HEAD", "?UserName=$v&i=$i", "", ""},
	{"a PUT", "PUT", "?username[]=$v&i=$i", "", ""},
	{"a PATCH", "PATCH", "?user%6eame=$v&i=$i", "", ""},
	{"a DELETE", "DELETE", "?username=$v&i=$i", "", ""},
	{"a semicolon in the query", "POST", "?a=b;username=$v", formType, "USERNAME=d$i"},
	{"a malformed escape in the query", "POST", "?a=%25&username=$v&i=$i", formType, "username=d$i"},
	{"empty brackets", "POST", "", formType, "username=d$i&username[]=$v"},
	{"brackets inside", "POST", "", formType, "userna[]me=$v&USERNAME=d$i"},
	{"brackets around", "POST", "", formType, "[username]=$v&username=d$i"},
	{"a path", "POST", "", formType, "username=d$i&form.username=$v"},
	{"brackets in a multipart form", "POST", "", multipartType, twoParts("username", "d$i", "username[]", "$v")},
	{"letter case", "POST", "", formType, "username=d$i&UserName=$v"},
	{"a long s", "POST", "", formType, "username=d$i&u%C5%BFername=$v"},
	{"JSON twice", "POST", "", jsonType, `{"username":"d$i","USERNAME":"$v"}`},
	{"JSON with two values", "POST", "", jsonType, `{"username":"$v"}{"username":"d$i"}`},
	{"JSON that is a form", "POST", "", formType, `{"username":"$v","x":"&username=d$i&"}`},
	{"JSON before a multipart form", "POST", "", multipartType, `{"username":"$v"}` + "\r\n" + multipartBody("username", "d$i")},
	{"JSON of a type that Fiber knows", "POST", "", "text/json", `{"username":"$v","i":$i}`},
	{"JSON of no type", "POST", "", "", `{"username":"$v","i":$i}`},
	{"XML", "POST", "", "application/xml", "<Form i='$i'><username>$v</username></Form>"},
	{"XML as text", "POST", "", "text/xml", "<Form i='$i'><username>$v</username></Form>"},
	{"YAML", "POST", "", "application/x-yaml", "username: $v\ni: $i"},
	{"TOML", "POST", "", "application/toml", "username = '$v'\ni = $i"},
	{"a form that only fasthttp reads", "POST", "", formType + "$i", "username=$v"},
	{"another boundary for fasthttp", "POST", "", `multipart/form-data; a="; boundary=YY;"; boundary=XX`, multipartBody("username", "d$i") + strings.ReplaceAll(multipartBody("username", "$v"), "XX", "YY")},
	{"many fields", "POST", "", formType, strings.Repeat("a&", 10_001) + "username=$v&i=$i"},
	{"parts in a quoted-printable value", "POST", "", multipartType, "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
		"x=0D=0A--XX=0D=0AContent-Disposition: form-data; name=3D\"username\"=0D=0A=0D=0Ad$i=0D=0A--XX--=0D=0A\r\n" + multipartBody("username", "$v")},
	{"white space around", "POST", "", formType, "username=$v%E2%80%A8%C2%85%E1%9A%80"},
	{"letters that have another length in capitals", "POST", "", formType, "username=$v$case"},
	{"letters that have another length in capitals, in JSON", "POST", "", jsonType, `{"username":"$v$case"}`},
	{"an invisible character, another one each time", "POST", "", formType, "username=$v$hidden"},
	{"an invisible character in JSON", "POST", "", jsonType, `{"username":"$v$escaped"}`},
	{"JSON by the end of the type, a form by its beginning", "POST", "", formType + "+json", `{"username":"d$i","x":"&username=$v&password=p&"}`},
	{"JSON in another field", "POST", "", formType, "username=d$i&Form=%7B%22username%22%3A%22$v%22%7D"},
	{"JSON in another part", "POST", "", multipartType, twoParts("username", "d$i", "Form", `{"username":"$v"}`)},
	{"YAML in braces behind dots", "POST", "", formType, `...{"username":"$v","password":"p","a":"&username=d$i&"}`},
	{"two types, a form and a multipart form", "POST", "", formType + "; boundary=XX", "username=d$i&x=\r\n" + multipartBody("username", "$v")},
	{"two types, a multipart form and a form", "POST", "", multipartType, "username=$v&x=d$i\r\n" + multipartBody("username", "d$i")},
	{"a multipart form without its parts", "POST", "", multipartType, "username=$v&x=$i"},
	{"a form in the header of a part", "POST", "", multipartType, "--XX\r\nX: &username=$v&\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nd$i\r\n--XX--\r\n"},
	{"a form of the type of a multipart form, and a comma", "POST", "", multipartType + ", " + formType, "username=$v&x=$i"},
	{"YAML between the parts", "POST", "", "multipart/form-data; boundary=-", strings.ReplaceAll(twoParts("x", "username: $v", "username", "d$i"), "XX", "-")},
	{"XML in a part", "POST", "", multipartType, twoParts("x", "<F><login>$v</login></F>", "username", "d$i")},
	{"XML in JSON", "POST", "", jsonType, `{"x":"<F><login>$v</login></F>","username":"d$i"}`},
	{"numbers that a float64 cannot tell apart", "POST", "", jsonType, `{"username":$number}`},
	{"numbers with a fraction that a float64 cannot tell apart", "POST", "", jsonType, `{"username":$number.0}`},
	{"protobuf", "POST", "", "application/x-protobuf", "\n\x0b$v"},
}

// hiddenInAPath are such requests for the field user[name].
var hiddenInAPath = []hiding{
	{"the query beside JSON", "POST", "?user[name]=$v", jsonType, `{"user":{"name":"d$i"}}`},
	{"the query in dots beside JSON", "POST", "?user.name=$v", jsonType, `{"user":{"name":"d$i"}}`},
	{"the query in capitals beside JSON", "POST", "?USER[Name]=$v", jsonType, `{"user":{"name":"d$i"}}`},
	{"the query beside a form", "POST", "?user.name=$v", formType, "user[name]=d$i"},
	{"dots beside brackets", "POST", "", formType, "user[name]=d$i&user.name=$v"},
	{"text behind the bracket", "POST", "", formType, "user[name]=d$i&user[name]x=$v"},
	{"empty brackets in a path", "POST", "", multipartType, twoParts("user[name]", "d$i", "user[][name]", "$v")},
	{"an object twice", "POST", "", jsonType, `{"user":{"name":"d$i"},"User":{"name":"$v"}}`},
	{"a member beside an object", "POST", "", jsonType, `{"user[name]":"d$i","user":{"name":"$v"}}`},
	{"an object beside a member", "POST", "", jsonType, `{"user":{"name":"$v"},"user[name]":"d$i"}`},
}

// hiddenByName are such requests for the field name of the object user in JSON.
var hiddenByName = []hiding{
	{"the query of the same name", "POST", "?name=$v", jsonType, `{"user":{"name":"d$i"}}`},
	{"the query of the same path", "POST", "?user[name]=$v", jsonType, `{"user":{"name":"d$i"}}`},
	{"the query of the same path in dots", "POST", "?user.name=$v", jsonType, `{"user":{"name":"d$i"}}`},
	{"the query alone", "POST", "?name=$v&i=$i", "", ""},
}

// hiddenByCase are such requests for the field mail. The letter U+0130 becomes an
// i if a handler makes it small, and U+0131 an I if a handler makes it large.
var hiddenByCase = []hiding{
	{"a capital I with a dot", "POST", "", jsonType, `{"mail":"d$i","ma\u0130l":"$v"}`},
	{"a capital I with a dot in a form", "POST", "", formType, "mail=d$i&MA%C4%B0L=$v"},
	{"a small i without a dot", "POST", "", jsonType, `{"mail":"d$i","ma\u0131l":"$v"}`},
	{"a small i without a dot in a form", "POST", "", formType, "mail=d$i&ma%C4%B1l=$v"},
	{"a small i without a dot in the query", "POST", "?ma%C4%B1l=$v", formType, "mail=d$i"},
}
