package expression

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/expr-lang/expr/ast"
)

// A key that may be empty is one for which a request can lack every value: a request
// without any has the empty key, and no other expression has it.
func TestWhichExpressionsMayBeEmpty(t *testing.T) {
	for text, want := range map[string]bool{
		`ip`: false, `method`: false, `path`: false, `"x"`: false, `""`: true, `lower(ip)`: false, `len(path)`: false, `5`: false,
		`cidr(ip, "10.0.0.0/8")`: false, `header["x"] == "y"`: false, `len(header["x"])`: false, `method + header["x"]`: false, `header["x"] + "-"`: false,
		`header["x"]`: true, `query["x"]`: true, `cookie["x"]`: true, `form["x"]`: true, `json["x"]`: true, `route`: true,
		`#[attributes.headers['x']]`: true, `lower(header["x"])`: true, `header["x"] + query["y"]`: true, `trim(header["x"])`: true,
		`header["x"] != "" ? header["x"] : ip`: true, `cidr(ip, "10.0.0.0/8") ? "inside" : "outside"`: false, `cidr(ip, "10.0.0.0/8") ? "inside" : ""`: true,
		`method in ["GET", "HEAD"]`: false, `path startsWith "/a" and path contains "b" or not (path endsWith ".js")`: false, `path matches "^/a+$"`: false,
		`string(header["x"])`: true, `string(len(path))`: false,
	} {
		e, bad := Compile(text, testSources())
		if bad != nil {
			t.Fatal(text, bad)
		}
		if e.MayBeEmpty() != want {
			t.Errorf("%s: may be empty: %t, want %t", text, e.MayBeEmpty(), want)
		}
		key, err := evaluate(t, text, httptest.NewRequest(http.MethodGet, "/", nil))
		if err != nil || key == "" && !want {
			t.Errorf("%s: is %q (%v) for a request without any value", text, key, err)
		}
	}
	if mayBeEmpty(&ast.ConstantNode{Value: "x"}) || !mayBeEmpty(&ast.ConstantNode{Value: ""}) || !mayBeEmpty(&ast.ConstantNode{}) {
		t.Error("constants: only the empty text and nil may be empty")
	}
	if e, _ := Compile("user", testSources()); !e.MayBeEmpty() {
		t.Error("user may be empty, and it is not told")
	}
}
