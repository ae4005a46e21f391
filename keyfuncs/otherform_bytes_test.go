package keyfuncs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Decoders of YAML and TOML give these bytes a meaning. Browsers and libraries escape them.
func TestStrictRefusesUnescapedBytesThatOtherDecodersReadInAForm(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	for c := range 0x100 {
		control, high := c < ' ' || c == 0x7f, c >= 0x80
		for _, row := range []struct {
			body    string
			refused bool
		}{
			{"username=alice&x=y%sz", control},
			{"username=alice&x=y%s", control},
			{"username=alice&x=y:%s", control || c == ' ' || high}, // a mapping
			{"username=alice&x=y{%s", control || c == ':'},
			{"username=alice&x=y<%s", control || c == '>'},
			{"username=alice&x=y<z%s", control || c == '>'},
			{"%s=x&username=alice", control || high || c == '{'},
			{"password=%sx&username=alice", control || strings.ContainsRune("\"'{[#", rune(c))}, // a value or a comment of TOML
			{"password=  %s&username=alice", control || strings.ContainsRune("\"'{[#", rune(c))},
		} {
			want := "alice"
			if row.refused {
				want = bad
			}
			body := fmt.Sprintf(row.body, string([]byte{byte(c)}))
			check(t, fmt.Sprintf("%q", body), f, formRequest(body), want)
		}
	}
}

// Programs write boundaries with the other characters.
func TestStrictRefusesBoundariesThatMeanSomethingInYAMLOrTOML(t *testing.T) {
	f := keyfuncs.PostField("username", keyfuncs.Strict())
	const accepted = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'()+_,-./?"
	for c := rune(' '); c < 0x7f; c++ {
		if c == '"' || c == '\\' {
			continue // they end or escape in the header
		}
		for _, boundary := range []string{string(c) + "x", "x" + string(c) + "x"} {
			want := bad
			if strings.ContainsRune(accepted, c) {
				want = "alice"
			}
			body := "--" + boundary + "\r\nContent-Disposition: form-data; name=username\r\n\r\nalice\r\n--" + boundary + "--\r\n"
			check(t, boundary, f, &request{header: headers("Content-Type", `multipart/form-data; boundary="`+boundary+`"`), body: body}, want)
		}
	}
}
