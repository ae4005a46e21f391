package readers

import (
	"fmt"
	"net/url"
	"strings"

	"pgregory.net/rapid"
)

// What requests are put together of.
var (
	names = []string{
		"username", "username", "USERNAME", "userName", "username[]", "userna[]me", "[username]", "[]username", "user%6eame", "u%C5%BFername", "form.username",
		"form[username]", "username.0", "username[0]", "username%", "%zz", "username+", "user", "name", "a", "",
		"user[name]", "user[name]", "user.name", "user[name]x", "User[Name]", "user[][name]", "user]name[", "user[name", "user%5Bname%5D", "user[na]me", "user[name][]",
		"id", "id", "ID", "id[]", "[id]", "i%64", "id;x",
	}
	values = []string{"victim", "decoy", "decoy2", "", "vic%74im", "vic%zztim", "a;username=victim", "a+b", "%E2%80%A8victim", "%00victim", "victim%E2%80%8B", "x=y", "Victim", "%"}
	types  = []string{
		FormType, FormType, FormType, FormType + "; charset=utf-8", FormType + "x", " " + FormType, MultipartType, MultipartType, MultipartType, `multipart/form-data; boundary="XX"`,
		`multipart/form-data; a="; boundary=YY"; boundary=XX`, "multipart/form-data; boundary=YY; boundary=XX", "multipart/form-data;boundary = XX", "multipart/mixed; boundary=XX",
		JSONType, JSONType, JSONType + ";charset=utf-16", "application/vnd.api+json", "text/json", "APPLICATION/JSON", "application/json x", "text/xml", "application/x-yaml", "text/plain", "",
	}
	methods = []string{"POST", "POST", "POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"}
	headers = []string{
		"Content-Disposition: form-data; name=\"$n\"", "Content-Disposition: form-data; name=\"$n\"", "Content-Disposition: form-data; name=$n", "content-disposition: form-data; name=\"$n\"; filename=\"f\"",
		"Content-Disposition: form-data; name=\"$n\"; filename=\"\"", "Content-Disposition: form-data; name*=UTF-8''$n", "Content-Disposition: attachment; name=\"$n\"",
		"Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"$n\"", "Content-Type: text/plain\r\nContent-Disposition: form-data; name=\"$n\"",
		"Content-Disposition: form-data; name=\"$n\"\r\nContent-Transfer-Encoding: quoted-printable", "X: y",
	}
	inserted   = "=0D=0A--XX=0D=0AContent-Disposition: form-data; name=3D\"username\"=0D=0A=0D=0Adecoy=0D=0A--XX--=0D=0A"
	jsonValues = []string{`"victim"`, `"decoy"`, `null`, `1.0`, `["victim"]`, `{"username":"victim"}`, `{"name":"victim"}`, `"\u0076ictim"`, `"victim\u200b"`, `"&username=decoy&"`, `"` + "\xff" + `"`}
)

func draw(t *rapid.T, what string, from []string) string {
	return rapid.SampledFrom(from).Draw(t, what)
}

func drawPairs(t *rapid.T, what string, separators ...string) string {
	var b strings.Builder
	for range rapid.IntRange(0, 4).Draw(t, what) {
		b.WriteString(draw(t, "name", names))
		b.WriteString(draw(t, "equals", []string{"=", "=", "=", ""}))
		b.WriteString(draw(t, "value", values))
		b.WriteString(draw(t, "separator", separators))
	}
	return b.String()
}

func drawMultipart(t *rapid.T) string {
	var b strings.Builder
	b.WriteString(draw(t, "preamble", []string{"", "", "", "x\r\n", `{"username":"victim"}` + "\r\n"}))
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		name, _ := url.QueryUnescape(draw(t, "name", names))
		boundary := draw(t, "boundary", []string{"XX", "XX", "XX", "XX", "YY"})
		value := draw(t, "value", append([]string{inserted, inserted}, values...))
		fmt.Fprintf(&b, "--%s\r\n%s\r\n\r\n%s\r\n", boundary, strings.ReplaceAll(draw(t, "part", headers), "$n", name), value)
	}
	b.WriteString(draw(t, "end", []string{"--XX--\r\n", "--XX--\r\n", "--XX--", "--XX", "", "--YY--"}))
	return b.String()
}

func drawJSON(t *rapid.T) string {
	var members []string
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		name, _ := url.QueryUnescape(draw(t, "name", append([]string{`u\u0073ername`}, names...)))
		members = append(members, `"`+name+`":`+draw(t, "value", jsonValues))
	}
	return draw(t, "before", []string{"", "", " \n", "\ufeff", "["}) + "{" + strings.Join(members, ",") + draw(t, "after", []string{"}", "}", "} x", `}{"username":"victim"}`, "", "}]"})
}

// Draw draws a request whose parts fit more often than not.
func Draw(t *rapid.T) []byte {
	contentType := draw(t, "type", types)
	bodies := map[string]func() string{
		"none": func() string { return "" }, "JSON": func() string { return drawJSON(t) },
		"form": func() string { return drawPairs(t, "fields", "&", "&", "&&", ";") }, "multipart": func() string { return drawMultipart(t) },
	}
	kinds := []string{"none", "JSON", "form", "multipart"}
	switch {
	case strings.Contains(contentType, "json"):
		kinds = append(kinds, "JSON", "JSON", "JSON", "JSON")
	case strings.Contains(contentType, "multipart"):
		kinds = append(kinds, "multipart", "multipart", "multipart", "multipart")
	default:
		kinds = append(kinds, "form", "form", "form")
	}
	body := bodies[draw(t, "body", kinds)]()
	query := ""
	if rapid.IntRange(0, 2).Draw(t, "with a query") == 0 {
		query = drawPairs(t, "parameters", "&", "&", "&&", ";")
	}
	return Request(draw(t, "method", methods), query, contentType, []byte(body), rapid.Bool().Draw(t, "chunked"))
}

var (
	cookieNames  = []string{"sid", "sid", "sid", "SID", "sid[]", "[sid]", " sid", "\tsid", "sid ", "s%69d", "a", ""}
	cookieValues = []string{"abc", "abd", "%61bc", "a+b", "%zz", "%", `"abc"`, `"ab c"`, ` "abc"`, " abc", "abc ", "a b", `a"b`, `a\b`, "a,b", "\tabc", "é", "", "a=b", `"`}
)

// drawCookies draws a request with cookies.
func drawCookies(t *rapid.T) []byte {
	var lines strings.Builder
	for range rapid.IntRange(0, 2).Draw(t, "lines") {
		lines.WriteString("Cookie: ")
		for range rapid.IntRange(0, 3).Draw(t, "cookies") {
			lines.WriteString(draw(t, "name", cookieNames) + draw(t, "equals", []string{"=", "=", "=", ""}) + draw(t, "value", cookieValues) + draw(t, "separator", []string{"; ", "; ", ";", ";;", " ; ", ", "}))
		}
		lines.WriteString("\r\n")
	}
	return []byte("GET / HTTP/1.1\r\nHost: a\r\n" + lines.String() + "\r\n")
}
