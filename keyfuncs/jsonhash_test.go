package keyfuncs_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/keyfuncs"
)

// collides has, for json-iterator, the same hash as username.
const collides = "ypdwjv_{t}7{5\xf18w"

func TestNamesWithTheSameJSONIteratorHashAreTheField(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	for _, row := range []struct{ name, body, want string }{
		{"both", `{"username":"decoy","` + collides + `":"victim"}`, bad},
		{"both, the other way round", "{ \"a\" : 1 ,\n \"" + collides + `" : "victim" , "username":"decoy"}`, bad},
		{"in capitals", `{"username":"decoy","` + strings.ToUpper(collides[:13]) + collides[13:] + `":"victim"}`, bad},
		{"with an escape", `{"username":"decoy","\u0079` + collides[1:] + `":"victim"}`, "decoy"}, // hashed by characters
		{"with the escape of a letter behind the other bytes", `{"username":"decoy","` + collides[:len(collides)-1] + `\u0077":"victim"}`, bad},
		{"all of it by characters", `{"username":"decoy","\u0079` + strings.Replace(collides[1:], "\xf1", `\u00f1`, 1) + `":"victim"}`, bad},
		{"by itself", `{"` + collides + `":"victim"}`, "victim"},
		{"another name", `{"username":"decoy","` + collides[1:] + `":"victim"}`, "decoy"},
		{"the name with an escape", `{"username":"decoy","user\u006eame":"victim"}`, bad},
		{"a name without letters", `{"username":"decoy","":"victim","\\":1}`, "decoy"},
	} {
		check(t, row.name, f, &request{header: headers("Content-Type", jsonType), body: row.body}, row.want)
	}
	// A name with the same text appended has the same hash again.
	letters := keyfuncs.PostField("username@`az[{", keyfuncs.Strict())
	for suffix, want := range map[string]string{"@`az[{": bad, "@`AZ[{": bad, "``az[{": "decoy", "@@az[{": "decoy", "@`az{{": "decoy", "@`az[[": "decoy"} {
		check(t, "in capitals: "+suffix, letters, &request{header: headers("Content-Type", jsonType), body: "{\"username@`az[{\":\"decoy\",\"" + collides + suffix + `":"victim"}`}, want)
	}
	list := keyfuncs.PostField("username[]", keyfuncs.Strict())
	check(t, "with brackets", list, &request{header: headers("Content-Type", jsonType), body: `{"username[]":"decoy","` + collides + `[]":"victim"}`}, bad)
	flat := keyfuncs.PostField("username", keyfuncs.JSONPath("credentials", "username"), keyfuncs.Strict())
	check(t, "inside", flat, &request{header: headers("Content-Type", jsonType), body: `{"credentials":{"username":"decoy","` + collides + `":"victim"}}`}, bad)
}

// If the handler has a struct or a map for the other field, Gin reads its value as JSON.
func TestStrictRefusesTheNameInTheJSONOfAnotherField(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	lenient := keyfuncs.PostField("username")
	for _, row := range []struct{ name, value, want string }{
		{"a member", `{"username":"victim"}`, bad},
		{"white space and another member", " \r\n\t{ \"a\" : [ {}, 1 , \"username\" ] , \"UserName\" : \"victim\" }", bad},
		{"deeper", `{"a":{"b":[{"c":null,"username":"victim"}]}}`, bad},
		{"before an error", `{"username":"victim",`, bad},
		{"in other letters", "{\"u\u017fername\":\"victim\"}", bad},
		{"by its hash", `{"` + collides + `":"victim"}`, bad},
		{"as a value", `{"a":"username","b":["username",{"c":"username"}]}`, "decoy"},
		{"behind an error", `{"a":,"username":"victim"}`, "decoy"},
		{"behind the object", `{"a":1} {"username":"victim"}`, "decoy"},
		{"an array", `[{"username":"victim"}]`, "decoy"},
		{"a password", `{"}[`, "decoy"},
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
