package nilcheck_test

import (
	"io"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/nilcheck"
)

func TestIsNil(t *testing.T) {
	var none io.Reader
	var pointer *strings.Reader
	var list []int
	for i, x := range []any{nil, none, pointer, io.Reader(pointer)} {
		if !nilcheck.IsNil(x) {
			t.Errorf("%d: %T is not nil", i, x)
		}
	}
	for i, x := range []any{strings.NewReader(""), 0, "", struct{}{}, list} {
		if nilcheck.IsNil(x) {
			t.Errorf("%d: %T is nil", i, x)
		}
	}
}
