package keyfuncs_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestFirstOf(t *testing.T) {
	failed := errors.New("failed")
	key := func(k string, err error) core.KeyFunc {
		return func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, k...), err }
	}
	never := func([]byte, core.Request) ([]byte, error) {
		t.Error("a function after the first that finds something is asked")
		return nil, nil
	}
	for _, row := range []struct {
		name string
		fs   []core.KeyFunc
		want string
		err  error
	}{
		{"the first", []core.KeyFunc{key("a", nil), never}, "before1:a", nil},
		{"the first is empty", []core.KeyFunc{key("", nil), key("a", nil), never}, "before2:a", nil},
		{"the first skips", []core.KeyFunc{key("left over", core.SkipRule), key("a", nil)}, "before2:a", nil},
		{"none finds anything", []core.KeyFunc{key("", nil), key("", core.SkipRule)}, "before", nil},
		{"all skip", []core.KeyFunc{key("", core.SkipRule), key("x", core.SkipRule)}, "before", core.SkipRule},
		{"the first fails", []core.KeyFunc{key("", failed), never}, "before1:", failed},
		{"a bad request", []core.KeyFunc{key("", core.ErrBadRequest), never}, "before1:", core.ErrBadRequest},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := keyfuncs.FirstOf(row.fs...)([]byte("before"), &request{})
			if string(got) != row.want || !errors.Is(err, row.err) {
				t.Errorf("key %q and error %v, want %q and %v", got, err, row.want, row.err)
			}
		})
	}
}

func TestTheSameKeyOfTwoFunctionsOfFirstOfDiffers(t *testing.T) {
	user := keyfuncs.FirstOf(keyfuncs.Header("X-User"), keyfuncs.ClientIP())
	named := keyOf(t, user, &request{remote: "198.51.100.1:80", header: headers("X-User", "192.0.2.1")})
	address := keyOf(t, user, &request{remote: "192.0.2.1:80"})
	if named == address {
		t.Errorf("a user who is called as an address has its key: %q", named)
	}
}

func TestFirstOfAndJoinDoNotKeepTheCallersSlice(t *testing.T) {
	fs := []core.KeyFunc{keyfuncs.Static("a"), keyfuncs.Static("b")}
	first, joined := keyfuncs.FirstOf(fs...), keyfuncs.Join(fs...)
	fs[0] = keyfuncs.Static("changed")
	if got := keyOf(t, first, &request{}); got != "1:a" {
		t.Errorf("FirstOf: key %q", got)
	}
	if got := keyOf(t, joined, &request{}); got != "a\x00\x00\x00\x01b\x00\x00\x00\x01" {
		t.Errorf("Join: key %q", got)
	}
}

// Shared stores keep these names.
func TestFirstOfNamesTheFunctionByItsDecimalPlace(t *testing.T) {
	none := keyfuncs.Static("")
	for place := 1; place <= 12; place++ {
		f := keyfuncs.FirstOf(append(slices.Repeat([]core.KeyFunc{none}, place-1), keyfuncs.Static("a"))...)
		if got, want := keyOf(t, f, &request{}), fmt.Sprintf("%d:a", place); got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}

func ExampleFirstOf() {
	key := keyfuncs.FirstOf(keyfuncs.Header("X-User"), keyfuncs.ClientIP())
	show(key, &request{remote: "192.0.2.1:80", header: headers("X-User", "alice")})
	show(key, &request{remote: "192.0.2.1:80"})
	// Output:
	// "1:alice" <nil>
	// "2:192.0.2.1" <nil>
}
