package expression

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

func headers(n int) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X", strings.Repeat("a", n))
	return r
}

// The work of a regular expression is its program's size multiplied by the
// length of its input: an expression has a bound for both.
func TestTheWorkOfARegularExpressionIsBounded(t *testing.T) {
	for _, text := range []string{
		`header["x"] matches "(a|b|c|aa|bb){1,900}x"`,
		`header["x"] matches "[a-z]{0,300}x" or header["x"] matches "[a-z]{0,300}y"`,
	} {
		e, bad := Compile(text, testSources())
		if bad == nil {
			t.Errorf("%s is taken: %d instructions", text, e.patterns)
		} else if !strings.Contains(bad.Problem, "instructions: at most 500") || bad.Hint == "" {
			t.Errorf("%s: %s (%s)", text, bad.Problem, bad.Hint)
		}
	}
	for text, least := range map[string]int{
		`header["x"] matches "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$"`: 5000, `header["x"] matches "(a|b|c|aa|bb){1,40}x"`: 1000, `header["x"]+"a"`: maxInput, `header["x"] matches "a"`: maxInput,
	} {
		e, bad := Compile(text, testSources())
		if bad != nil {
			t.Fatal(bad.Problem)
		}
		most := e.mostInput()
		if most < least || most > maxInput || e.patterns*most > maxWork {
			t.Errorf("%s: %d instructions and %d bytes", text, e.patterns, most)
		}
		for n, refused := range map[int]bool{most: false, most + 1: true} {
			requesttest.See(t, headers(n), func(r core.Request) {
				if _, err := e.value(r); errors.Is(err, core.ErrBadRequest) != refused {
					t.Errorf("%s of %d bytes: %v", text, n, err)
				} else if refused && !strings.Contains(err.Error(), `header["x"] has `) {
					t.Errorf("says %v", err)
				}
			})
		}
	}
	// What it reads is counted together, and anew for each request.
	e, _ := Compile(`header["x"] + header["x"] == "" `, testSources())
	for range 2 {
		for n, refused := range map[int]bool{maxInput / 2: false, maxInput/2 + 1: true} {
			requesttest.See(t, headers(n), func(r core.Request) {
				if _, err := e.value(r); (err != nil) != refused {
					t.Errorf("twice %d bytes: %v", n, err)
				}
			})
		}
	}
}

// The worst regular expressions that are taken, over the longest input.
func BenchmarkWorstExpression(b *testing.B) {
	for _, text := range []string{`header["x"] matches "(a|b|c|aa|bb){1,40}x"`, `header["x"] matches "(a*)*(a|aa)*[a-z]{0,150}x"`, `header["x"] matches "(x+x+)+y"`, `lower(upper(header["x"])) contains "aaaaaaaab"`} {
		b.Run(words.Shorten(text), func(b *testing.B) {
			e, bad := Compile(text, testSources())
			if bad != nil {
				b.Fatal(bad.Problem)
			}
			requesttest.See(b, headers(e.mostInput()), func(r core.Request) {
				for b.Loop() {
					if _, err := e.value(r); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// The error names the first value that could not be read.
func TestTheFirstOfTwoLongValuesIsNamed(t *testing.T) {
	r := headers(maxInput + 1)
	r.Header.Set("Y", strings.Repeat("b", maxInput+2))
	if _, err := evaluate(t, `header["x"]+header["y"]`, r); !errors.Is(err, core.ErrBadRequest) || !strings.Contains(err.Error(), `header["x"] has 65537 bytes`) {
		t.Errorf("%v, want it to name x", err)
	}
}
