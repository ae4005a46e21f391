package mulesoft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
)

func TestEachOperatorAndFunctionOfAKeySelector(t *testing.T) {
	for selector, want := range map[string]string{
		"'a' or 'b'": `("a" or "b")`, "'a' and 'b'": `("a" and "b")`, "'a' == 'b'": `("a" == "b")`, "'a' != 'b'": `("a" != "b")`,
		"'a' startsWith 'b'": `("a" startsWith "b")`, "'a' endsWith 'b'": `("a" endsWith "b")`, "'a' contains 'b'": `("a" contains "b")`, "'a' ++ 'b' ++ 'c'": `(("a" + "b") + "c")`,
		"upper('a')": `upper("a")`, "lower('a')": `lower("a")`, "trim('a')": `trim("a")`, "('a')": `("a")`, "''": `""`, `""`: `""`, "`a'b\"c`": `"a'b\"c"`,
		"attributes.headers._x1_Y": `header["_x1_y"]`, "attributes.queryParams._x1_Y": `query["_x1_Y"]`, "attributes.queryParams.id default 'n'": `(query["id"] != "" ? query["id"] : "n")`,
		"attributes.queryParam.id default attributes.method": `(query["id"] != "" ? query["id"] : method)`, "attributes.headers.ä": `header["ä"]`,
		"'a' or 'b' and 'c' == 'd' ++ 'e'": `("a" or ("b" and ("c" == ("d" + "e"))))`,
	} {
		if key, err := mulesoft.Translate("#[" + selector + "]"); err != nil || key.Expression != want {
			t.Errorf("%s: %s, %v, want %s", selector, key.Expression, err, want)
		}
	}
}

// No part of a selector is left out: the key of a part would give other counters.
func TestAPartThatIsNotTranslatedIsAnErrorWhereverItIs(t *testing.T) {
	for _, around := range []string{
		"?", "(?)", "!?", "not ?", "upper(?)", "? default 'x'", "attributes.headers.x default ?", "? ++ 'x'", "'x' ++ ?", "'x' == ?", "if (?) 'x' else 'y'", "if ('x') ? else 'y'", "if ('x') 'y' else ?",
	} {
		for part, want := range map[string]string{"payload": "payload is not translated", "9870": "9870 is not translated", "56a": "56 is not translated", "attributes.version": "attributes.version is not translated", "attributes.5": "5 is where a name is expected", "]": "] is not translated"} {
			selector := strings.Replace(around, "?", part, 1)
			if key, err := mulesoft.Translate("#[" + selector + "]"); err == nil || !strings.Contains(err.Error(), want) || key.Expression != "" {
				t.Errorf("%s: %s, %v, want %s", selector, key.Expression, err, want)
			}
		}
	}
	for selector, want := range map[string]string{
		"if 'a' 'b' else 'c'": `"a" is where ( is expected`, "if ('a' 'b' else 'c'": `"b" is where ) is expected`, "if ('a') 'b' 'c'": `"c" is where else is expected`, "upper 'a'": `"a" is where ( is expected`, "('a'": "the end is where ) is expected",
		"attributes 'a'": `"a" is where a name is expected`, "attributes.headers['x' ++ 'y']": "attributes.headers: ++ is where ] is expected: want a name", "attributes['x'": "the end is where ] is expected", "'a' 'b'": `"b" is not translated`,
		"attributes.headers": "attributes.headers: the end is where a name is expected: want a name, such as attributes.headers['x']", "attributes.headers.'x'": "",
	} {
		key, err := mulesoft.Translate("#[" + selector + "]")
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), " (write it by hand, from method, path, ip, ")) {
			t.Errorf("%s: %s, %v, want %s", selector, key.Expression, err, want)
		}
	}
}

// Only a header and a query parameter can be missing.
func TestDefaultBehindAnythingElseIsAnError(t *testing.T) {
	for _, value := range []string{"'a'", "('a')", "upper('a')", "attributes.method", "attributes.requestPath", "attributes.remoteAddress", "(attributes.headers.x)"} {
		if key, err := mulesoft.Translate("#[" + value + " default 'b']"); err == nil || !strings.Contains(err.Error(), "default is translated behind one attribute only") {
			t.Errorf("%s: %s, %v", value, key.Expression, err)
		}
	}
}

func TestRemarksOnKeySelectors(t *testing.T) {
	const (
		address = "attributes.remoteAddress has the port of the connection; ip is the address alone, and IPv6 addresses are cut to 64 bits"
		param   = "attributes.queryParam is read as attributes.queryParams"
		missing = "with default, a value that is empty counts as missing"
	)
	for selector, want := range map[string][]string{
		"attributes.method": nil, "attributes.remoteAddress ++ attributes.remoteAddress": {address}, "attributes.queryParam.a ++ attributes.remoteAddress": {param, address},
		"attributes.queryParams.a": nil, "attributes.headers.a default 'b'": {missing},
	} {
		if key, err := mulesoft.Translate("#[" + selector + "]"); err != nil || !slices.Equal(key.Remarks, want) {
			t.Errorf("%s: %q, %v, want %q", selector, key.Remarks, err, want)
		}
	}
	if key, err := mulesoft.Translate(" all "); err != nil || !slices.Equal(key.Remarks, []string{`keySelector "all" is no expression: all requests share one counter`}) {
		t.Errorf("%q, %v", key.Remarks, err)
	}
}

func TestTheLongestAndDeepestKeySelector(t *testing.T) {
	text := func(n int) string { return "#['" + strings.Repeat("a", n-len("#['']")) + "']" }
	nested := func(n int) string { return "#[" + strings.Repeat("(", n) + "'a'" + strings.Repeat(")", n) + "]" }
	for name, c := range map[string]struct {
		selector, want string
	}{
		"4096 bytes": {text(4096), ""}, "4097 bytes": {text(4097), "it has 4097 bytes: at most 4096 (write"},
		"50 parts within each other": {nested(49), ""}, "51": {nested(50), "more than 50 parts within each other"},
		"60 parts beside each other": {"#[" + strings.Repeat("('a') ++ ", 59) + "'a']", ""},
	} {
		if _, err := mulesoft.Translate(c.selector); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
