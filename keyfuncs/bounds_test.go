package keyfuncs_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

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
	for _, length := range []int{keyfuncs.DefaultMaxBody, 100, 15} {
		opts := []keyfuncs.PostFieldOption{keyfuncs.Strict()}
		if length != keyfuncs.DefaultMaxBody {
			opts = append(opts, keyfuncs.MaxBody(length))
		}
		f := keyfuncs.PostField("username", opts...)
		body := "username=alice&" + strings.Repeat("x", length-len("username=alice&"))
		check(t, "just the length", f, formRequest(body), "alice")
		lenient := keyfuncs.PostField("username", keyfuncs.MaxBody(length))
		check(t, "just the length, not strict", lenient, formRequest(body), "alice")
		check(t, "one more byte, not strict", lenient, formRequest(body+"x"), "")
		check(t, "one more byte", f, formRequest(body+"x"), bad)
	}
	if got := keyOf(t, keyfuncs.PostField("username", keyfuncs.MaxBody(1)), formRequest("username=alice")); got != "" {
		t.Errorf("one byte of a body: %q", got)
	}
}

func TestRangesOfOptions(t *testing.T) {
	for _, bytes := range []int{1, 1 << 30} {
		keyfuncs.PostField("f", keyfuncs.MaxBody(bytes))
	}
	for _, bytes := range []int{-1, 0, 1<<30 + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("MaxBody(%d) does not panic", bytes)
				}
			}()
			keyfuncs.PostField("f", keyfuncs.MaxBody(bytes))
		}()
	}
}

// From 2^53 on, a float64 does not hold every whole number.
func TestStrictRefusesNumbersThatAreNotWholeOrReach2To53(t *testing.T) {
	strict, lenient := keyfuncs.PostField("id", keyfuncs.Strict()), keyfuncs.PostField("id")
	for _, row := range []struct{ number, strict, lenient string }{
		{"9007199254740991", "9007199254740991", "9007199254740991"},
		{"9007199254740991.0", bad, "9007199254740991"},
		{"9007199254740992", bad, "9007199254740992"},
		{"9007199254740993", bad, "9007199254740993"},
		{"9007199254740992.0", bad, "9.007199254740992e+15"},
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

// net/http drops a cookie with such a character, and fasthttp reads it.
func TestCookieRefusesCharactersThatNetHTTPDoesNotAccept(t *testing.T) {
	f := keyfuncs.Cookie("sid")
	for value, want := range map[string]string{
		`""`: "", `a]`: "a]", "a!b": "a!b", "a#": "a#", `"`: bad, `"a`: bad, `a"`: bad, `"a"b"`: bad, "a\x7f": bad, "\x7f": bad, "a\x80": bad, "a\x1f": bad, "a~": "a~", "a b": "a b", `a\`: bad, `"a b"`: "a b",
		`" a"`: " a", `"\x7f"`: bad, "a!": "a!", "a ": "a", " ": "", " a": bad, "%": bad, "%4": bad, "%41": "A", "%0g": bad,
	} {
		r := &request{header: headers("Cookie", "sid="+value)}
		check(t, "sid="+value, f, r, want)
		if want == bad {
			r.cookies = map[string]string{"sid": strings.Trim(value, " ")} // as fasthttp reads it
			check(t, "sid="+value+", which the framework reads", f, r, want)
		}
	}
}

// fasthttp reads the parameters of a Content-Type in another way than package mime. If only
// fasthttp finds a boundary, or finds another one, the body is not read.
func TestABoundaryThatOnlyFasthttpFinds(t *testing.T) {
	yy := strings.ReplaceAll(part(`name="username"`, "victim"), "XX", "YY") + "--YY--\r\n"
	xx := part(`name="username"`, "decoy") + "--XX--\r\n"
	strict, lenient := keyfuncs.PostField("username", keyfuncs.Strict()), keyfuncs.PostField("username")
	for _, row := range []struct{ kind, body, strict, lenient string }{
		{`multipart/form-data; a="; boundary=YY;"`, yy, bad, ""},
		{`multipart/form-data; a="; boundary=YY;"; boundary=XX`, xx, bad, ""},
		{`multipart/form-data; x=1; a="; boundary=YY;"; boundary=XX`, xx, bad, ""}, // behind another parameter
		{`multipart/form-data; a="; boundary=XX;"; boundary=XX`, xx, "decoy", "decoy"},
		{`multipart/form-data; x=1; boundary=XX`, xx, "decoy", "decoy"},
		{`multipart/form-data; boundary="XX"`, xx, "decoy", "decoy"},
		{`multipart/form-data;   boundary=XX`, xx, "decoy", "decoy"},
		{`multipart/form-data; boundary="XX`, xx, bad, ""},
		{`multipart/form-data; boundary="`, xx, bad, ""},
		{`multipart/form-data; boundary=""`, xx, bad, ""},
		{`Multipart/Form-Data; BOUNDARY=XX`, xx, "decoy", "decoy"},               // fasthttp finds none
		{`multipart/form-data; boundary =XX`, xx, "decoy", "decoy"},              // nor here
		{`multipart/form-data; a="; boundary=?XX"; boundary=XX`, xx, bad, ""},    // fasthttp finds ?XX"
		{`multipart/form-data; a="; boundary="; boundary=XX`, xx, bad, ""},       // fasthttp finds "
		{`multipart/form-data; a="; boundary="   ; boundary="  "`, "", bad, ""},  // fasthttp finds " and three spaces
		{`multipart/form-data; boundaryx=YY; boundary=XX`, xx, "decoy", "decoy"}, // fasthttp finds none
	} {
		r := &request{header: headers("Content-Type", row.kind), body: row.body}
		if r.body == "" {
			r.body = strings.ReplaceAll(xx, "XX", "  ")
		}
		check(t, row.kind, strict, r, row.strict)
		check(t, row.kind, lenient, r, row.lenient)
	}
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

// The walk over a header ends after 32 hops and after 4 KiB.
func TestAHeaderIsReadUpTo32HopsAnd4KiB(t *testing.T) {
	for name, row := range map[string]struct{ hop, client, header string }{
		"X-Forwarded-For": {"10.0.0.1", "203.0.113.9", "X-Forwarded-For"},
		"Forwarded":       {"for=10.0.0.1", "for=203.0.113.9", "Forwarded"},
	} {
		f := keyfuncs.ClientIP(keyfuncs.Behind(row.header, "10.0.0.0/8"))
		walk := func(what, want string, lines ...string) {
			t.Helper()
			r := &request{remote: "10.0.0.99:1", header: headers()}
			for _, line := range lines {
				r.header.Add(row.header, line)
			}
			check(t, name+": "+what, f, r, want)
		}
		hops := func(n int) string { return strings.Repeat(","+row.hop, n) }
		walk("32 hops", "203.0.113.9", row.client+hops(31))
		walk("33 hops", "10.0.0.1", row.client+hops(32))
		walk("32 hops in two lines", "203.0.113.9", row.client+hops(10), hops(21)[1:])
		walk("33 hops in two lines", "10.0.0.1", row.client+hops(10), hops(22)[1:])
		// The client's address is the first of the bytes that are looked at.
		pad := func(n int) string { return strings.Repeat(" ", n-len(row.client)-len(hops(1))) }
		walk("4096 bytes", "203.0.113.9", row.client+pad(4096)+hops(1))
		walk("4097 bytes", "10.0.0.1", " "+row.client+pad(4096)+hops(1))
		walk("the last 4096 bytes begin at a comma", "10.0.0.1", row.hop+","+row.client+pad(4095)+hops(1))
		walk("4096 bytes in two lines", "203.0.113.9", row.client+strings.Repeat(" ", 100-len(row.client)), strings.Repeat(" ", 3996-len(row.hop))+row.hop)
		walk("4097 bytes in two lines", "10.0.0.1", " "+row.client+strings.Repeat(" ", 100-len(row.client)), strings.Repeat(" ", 3996-len(row.hop))+row.hop)
		walk("two hops in a line before 4096 bytes", "10.0.0.1", row.client+","+strings.Replace(row.hop, "10.0.0.1", "10.0.0.2", 1), strings.Repeat(" ", 4096-len(row.hop))+row.hop)
		walk("a line before 4096 bytes", "10.0.0.1", row.client, strings.Repeat(" ", 4096-len(row.hop))+row.hop)
	}
	f := keyfuncs.ClientIP(keyfuncs.Behind("Forwarded", "10.0.0.0/8"))
	for line, want := range map[string]string{
		"a=1;b=1;c=1;d=1;e=1;f=1;g=1;for=203.0.113.9":     "203.0.113.9", // 8 parameters
		"a=1;b=1;c=1;d=1;e=1;f=1;g=1;for=203.0.113.9;h=1": "10.0.0.99",
		"for": "10.0.0.99", "for=": "10.0.0.99", "=203.0.113.9": "10.0.0.99", `for="203.0.113.9`: "10.0.0.99", `for="203.0.113.9\`: "10.0.0.99", `for="203.0.113.9` + "\x1f" + `"`: "10.0.0.99",
		`for="203.0.113.9` + "\x7f" + `"`: "10.0.0.99", `for=203.0.113.9;x="` + "\t" + ` ~"`: "203.0.113.9", `for=203.0.113.9;x=""`: "203.0.113.9", "for=203.0.113.9;x=": "10.0.0.99",
		`for="203.0.113.9:12345"`: "203.0.113.9", `for="203.0.113.9:123456"`: "10.0.0.99", `for="203.0.113.9:"`: "10.0.0.99", `for="203.0.113.9:_"`: "10.0.0.99", `for="203.0.113.9:_a.B-9"`: "203.0.113.9", `for="203.0.113.9:_a/"`: "10.0.0.99",
		`for="203.0.113.9:_/"`: "10.0.0.99", `for="203.0.113.9:80x"`: "10.0.0.99", `for="203.0.113.9:_/a"`: "10.0.0.99",
		"=x;for=203.0.113.9": "10.0.0.99", "x for=203.0.113.9": "10.0.0.99", "x;y=1;for=203.0.113.9": "10.0.0.99", "x;1;for=203.0.113.9": "10.0.0.99", `x="a;for=203.0.113.9`: "10.0.0.99", `for=203.0.113.9;x="a`: "10.0.0.99", `for=203.0.113.9;x="a\`: "10.0.0.99",
		`for=203.0.113.9;x="` + "\x1f" + `"`: "10.0.0.99", `for=203.0.113.9;x="` + "\x7f" + `"`: "10.0.0.99", `for=203.0.113.9;x="` + "\u0080" + `"`: "203.0.113.9", `for="::1"`: "10.0.0.99",
		`for="[2001:db8::1]"`: "2001:db8::/64", `for="[2001:db8::1]:80"`: "2001:db8::/64", `for="2001:db8::1:80"`: "10.0.0.99",
		"a@=1;for=203.0.113.9": "10.0.0.99", "a[=1;for=203.0.113.9": "10.0.0.99", "a`=1;for=203.0.113.9": "203.0.113.9", "a{=1;for=203.0.113.9": "10.0.0.99", "a/=1;for=203.0.113.9": "10.0.0.99", "a:=1;for=203.0.113.9": "10.0.0.99", "zZ09=1;for=203.0.113.9": "203.0.113.9",
	} {
		check(t, line, f, &request{remote: "10.0.0.99:1", header: headers("Forwarded", line)}, want)
	}
}
