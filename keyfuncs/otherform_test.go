package keyfuncs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestStrictRefusesWhatOtherDecodersRead(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict(), keyfuncs.RequireValue())
	xml := "<F><username>victim</username></F>"
	part := "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\nd1\r\n"
	for _, row := range []struct{ name, kind, body, want string }{
		{"XML", formType, "<F><username>victim</username><!--&username=d1&--></F>", bad},
		{"XML behind text", formType, "username=d1" + xml, bad},
		{"YAML", formType, "username: victim\n#&username=d1", bad},
		{"YAML in one line", formType, "username: victim #&username=d1", bad},
		{"YAML with another line break", formType, "username:\u0085victim #&username=d1", bad},
		{"YAML in braces", formType, "--- {username: victim} #&username=d1", bad},
		{"TOML", formType, "'username'='victim'\n#&username=d1", bad},
		{"TOML in one line", formType, "'username'= 'victim'#&username=d1", bad},
		{"TOML, a number", formType, "username=1 #2", bad},
		{"TOML, a value alone", formType, "username='victim'", bad},
		{"TOML, a value in double quotes", formType, `username= "victim"`, bad},
		{"TOML, a control character", formType, "username=d1\x7f", bad},
		{"a comment behind two fields", formType, "password&username=alice#1", "alice#1"},
		{"TOML, a table", formType, "username={x='victim'}", bad},
		{"TOML, a list", formType, "username=['victim']", bad},
		{"quotes that are not the first value", formType, `username=d1&password="x"`, "d1"},
		{"no value", formType, "password=&username=d1", "d1"},
		{"an angle bracket that closes nothing", formType, "username=alice&password=a>b", "alice"},
		{"nothing but a name and no value", formType, "username=", bad},
		{"no value at all", formType, "password&username=d1", "d1"},
		{"MessagePack, the first map", formType, "\x80&username=d1", bad},
		{"YAML, a brace behind a character of several bytes", formType, "x\u2000{username:victim}&username=d1", bad},
		{"MessagePack", formType, "\x81\xa8username\xa6victim&username=d1", bad},
		{"XML before a multipart form", multipartType, xml + "\r\n" + part + "--XX--\r\n", bad},
		{"XML in a part", multipartType, strings.Replace(part, "d1", xml, 1) + "--XX--\r\n", bad},
		{"XML behind a multipart form", multipartType, part + "--XX--\r\n<n:F><n:username>victim</n:username ></n:F>", bad},
		{"YAML in the boundary", "multipart/form-data; boundary=\"X: 1\"", strings.ReplaceAll(part, "XX", "X: 1") + "--X: 1--\r\n", bad},
		{"YAML in braces behind dots", formType, `...{"username":"victim","a":"&username=d1&"}`, bad},
		{"YAML in braces behind quotes", formType, `& ''{"username":"victim","a":"&username=d1&"}`, bad},
		{"YAML in braces behind a quoted equals sign", formType, `& '='{"username":"victim","a":"&username=d1&"}`, bad},
		{"JSON by the end of the type, a form by its beginning", formType + "+json", `{"username":"d1","x":"&username=victim&"}`, bad},
		{"a number with a fraction", jsonType, `{"username":1001.5}`, bad},
		{"a number with an exponent", jsonType, `{"username":1e3}`, bad},
		{"a number with a point", jsonType, `{"username":1.0}`, bad},
		{"a number below one", jsonType, `{"username":0.5}`, bad},
		{"a negative number with a fraction", jsonType, `{"username":-9.5}`, bad},
		{"nine", jsonType, `{"username":9}`, "9"},
		{"minus zero", jsonType, `{"username":-0}`, bad},
		{"zero", jsonType, `{"username":0}`, "0"},
		{"a negative number", jsonType, `{"username":-17}`, "-17"},
		{"the lowest number", jsonType, `{"username":-9007199254740991}`, "-9007199254740991"},
		{"the first number that is too low", jsonType, `{"username":-9007199254740992}`, bad},
		{"a byte that is not UTF-8", jsonType, "{\"username\":\"victim\xff\"}", bad},
		{"half a surrogate", jsonType, `{"username":"victim\ud800"}`, bad},
		{"a surrogate pair", jsonType, `{"username":"\ud83d\ude00"}`, "😀"},
		{"a large number", jsonType, `{"username":1152921504606846976}`, bad},
		{"the first number that is too large", jsonType, `{"username":9007199254740992}`, bad},
		{"a large negative number", jsonType, `{"username":-1e17}`, bad},
		{"the largest number", jsonType, `{"username":9007199254740991}`, "9007199254740991"},
		{"a capital I with a dot", jsonType, `{"username":"d1","username\u0130":"victim"}`, "d1"},
		{"a password that nothing escapes", formType, "username=alice&password=p\"w:<3 #{é", "alice"},
		{"a password with a hash", formType, "password=x&username=alice#1", "alice#1"},
		{"XML of other names in a part", multipartType, "\r\n" + part + strings.Replace(part, "d1", "<F><login>victim</login></F>", 1) + "--XX--\r\n", bad},
		{"XML, one letter", multipartType, strings.Replace(part, "d1", "<F>v</F>", 1) + "--XX--\r\n", bad},
		{"XML, white space behind text", multipartType, strings.Replace(part, "d1", "<F>victim<b> </b></F>", 1) + "--XX--\r\n", bad},
		{"XML, an attribute", multipartType, strings.Replace(part, "d1", "<F login='victim'/>", 1) + "--XX--\r\n", bad},
		{"XML, a comment", multipartType, strings.Replace(part, "d1", "<F><!--victim--></F>", 1) + "--XX--\r\n", bad},
		{"XML that breaks off", multipartType, strings.Replace(part, "d1", "<F><login>victim</login>", 1) + "--XX--\r\n", bad},
		{"XML in Latin-1", multipartType, strings.Replace(part, "d1", "<?xml version='1.0' encoding='latin1'?><F>victim</F>", 1) + "--XX--\r\n", bad},
		{"XML in JSON", jsonType, `{"username":"d1","x":"<F><username>victim</username></F>"}`, bad},
		{"XML in JSON, an attribute", jsonType, `{"username":"d1","x":"<F login='victim'/>"}`, bad},
		{"XML in JSON, escaped", jsonType, `{"username":"d1","x":"\u003cF>victim\u003c/F>"}`, "d1"},
		{"angle brackets that are no XML", multipartType, "\r\n" + strings.Replace(part, "d1", "<3> & a<b>c <", 1) + "--XX--\r\n", "<3> & a<b>c <"},
		{"tags without text", multipartType, strings.Replace(part, "d1", "<b/> <i>\r\n</i>", 1) + "--XX--\r\n", "<b/> <i>\r\n</i>"},
		{"an end before the beginning", jsonType, `{"username":"d1> <"}`, "d1> <"},
		{"YAML documents between the boundaries", "multipart/form-data; boundary=-", strings.ReplaceAll("--XX\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nusername: victim\r\n"+part, "XX", "-") + "-----\r\n", bad},
		{"a YAML document before the first part", multipartType, "--- {username: victim}\r\n" + part + "--XX--\r\n", bad},
		{"YAML that begins with the boundary", "multipart/form-data; boundary=username", "username: victim\r\n" + strings.ReplaceAll(part, "XX", "username") + "--username--\r\n", bad},
		{"a boundary of two dashes", "multipart/form-data; boundary=--", strings.ReplaceAll(part, "XX", "--") + "------\r\n", "d1"},
		{"the boundary of a browser", "multipart/form-data; boundary=----WebKitFormBoundaryAZaz09", strings.ReplaceAll(part, "XX", "----WebKitFormBoundaryAZaz09") + "------WebKitFormBoundaryAZaz09--\r\n", "d1"},
		{"every character that a boundary may have", "multipart/form-data; boundary=\"azAZ09'()+_,-./?\"", strings.ReplaceAll(part, "XX", "azAZ09'()+_,-./?") + "--azAZ09'()+_,-./?--\r\n", "d1"},
		{"a tab in the boundary", "multipart/form-data; boundary=\"-\t|\"", strings.ReplaceAll(part, "XX", "-\t|") + "---\t|--\r\n", bad},
		{"an equals sign in the boundary", "multipart/form-data; boundary=\"a=1\"", strings.ReplaceAll(part, "XX", "a=1") + "--a=1--\r\n", bad},
		{"another character in the boundary", "multipart/form-data; boundary=\"-\u0085x\"", strings.ReplaceAll(part, "XX", "-\u0085x") + "---\u0085x--\r\n", bad},
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

func TestPostFieldLogsOnceThatTheBodyWasRead(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	f := keyfuncs.PostField("username")
	for range 3 {
		_, err := f(nil, &request{header: headers("Content-Type", formType), body: "x", bodyErr: core.ErrBodyRead})
		var told *core.BadRequestError
		if !errors.As(err, &told) || !strings.Contains(told.Detail, "put the limiter first") {
			t.Errorf("error %v", err)
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, log.String())
	}
}
