package keyfuncs_test

import (
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestHeaderNames(t *testing.T) {
	for name, want := range map[string]string{
		"X-Api-Key": "<nil>", "x!#$%&'*+.^_`|~9": "<nil>",
		"":       `keyfuncs: Header: name: "": must be the name of a header, such as "X-Api-Key"`,
		"a b\n":  `keyfuncs: Header: name: "a b\n": must be the name of a header, such as "X-Api-Key"`,
		"X-Key:": `keyfuncs: Header: name: "X-Key:": must be the name of a header, such as "X-Api-Key"`,
		"ä":      `keyfuncs: Header: name: "ä": must be the name of a header, such as "X-Api-Key"`,
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("%q: panics with %s, want %s", name, got, want)
				}
			}()
			keyfuncs.Header(name)
		}()
	}
}
