package mulesoft_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
)

// MuleSoft's documents disagree about what not applies to: "not true or true". It is
// translated only if both readings are the same. ! applies to the next operand.
func TestNotIsTranslatedIfItHasOneMeaning(t *testing.T) {
	const a, b = "(attributes.method == 'A')", "(attributes.method == 'B')"
	const keyA, keyB = `((method == "A"))`, `((method == "B"))`
	for selector, want := range map[string]string{
		"not " + a:                                "(not " + keyA + ")",
		"not not " + a:                            "(not (not " + keyA + "))",
		"not !" + a:                               "(not (not " + keyA + "))",
		"(not " + a + ") or " + b:                 "(((not " + keyA + ")) or " + keyB + ")",
		"not (" + a + " or " + b + ")":            "(not ((" + keyA + " or " + keyB + ")))",
		a + " and not " + b:                       "(" + keyA + " and (not " + keyB + "))",
		"!" + a + " or " + b:                      "((not " + keyA + ") or " + keyB + ")",
		a + " or !" + b + " and " + a:             "(" + keyA + " or ((not " + keyB + ") and " + keyA + "))",
		"if (not " + a + ") 'x' else 'y'":         "((not " + keyA + `) ? "x" : "y")`,
		"if (" + a + ") not " + b + " else !" + a: "(" + keyA + " ? (not " + keyB + ") : (not " + keyA + "))",
	} {
		key, err := mulesoft.Translate("#[" + selector + "]")
		if err != nil || key.Expression != want {
			t.Errorf("%s: %s, %v, want %s", selector, key.Expression, err, want)
		}
	}
	for selector, want := range map[string]string{
		"not " + a + " or " + b:                "or follows not and its operand, which can be read in two ways: write not (a or b), (not a) or b, or !a or b",
		"not " + a + " and " + b:               "and follows not",
		"not attributes.method == 'A'":         "== follows not",
		"not " + a + " ++ 'x'":                 "++ follows not",
		a + " or not " + b + " and " + a:       "and follows not",
		"!not " + a + " or " + b:               "or follows not",
		"not !" + a + " or " + b:               "or follows not",
		"(not " + a + " or " + b + ")":         "or follows not",
		"not attributes.headers.x default 'y'": "default follows not",
		"!attributes.headers.x default 'y'":    "default is translated behind one attribute only",
	} {
		if key, err := mulesoft.Translate("#[" + selector + "]"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %s", selector, key.Expression, err, want)
		}
	}
}
