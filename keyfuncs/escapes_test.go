package keyfuncs_test

import (
	"net/url"
	"testing"

	"github.com/floodgate-go/floodgate/keyfuncs"
)

// If net/url drops a field because an escape is malformed, the request is refused.
func TestEscapesAreReadAsNetURLReadsThem(t *testing.T) {
	field, param := keyfuncs.PostField("username"), keyfuncs.Query("username")
	for c := range byte(0x80) {
		if c == '&' || c == ';' {
			continue // separators
		}
		for _, escape := range []string{"%" + string(c) + "1", "%1" + string(c), "%f" + string(c)} {
			for _, text := range []string{escape, "a" + escape + "+b", escape[:2], escape[:1]} {
				want, err := url.QueryUnescape(text)
				if err != nil {
					want = bad
				}
				check(t, "?username="+text, param, &request{rawQuery: "username=" + text}, want)
				check(t, "username="+text, field, formRequest("username="+text), want)
			}
		}
	}
}

// net/url drops such a field, and fasthttp reads it.
func TestANameWithAMalformedEscapeIsRefused(t *testing.T) {
	check(t, "a parameter", keyfuncs.Query("50%"), &request{rawQuery: "50%=x"}, bad)
	check(t, "a parameter that is escaped", keyfuncs.Query("50%"), &request{rawQuery: "50%25=x"}, "x")
	check(t, "a field", keyfuncs.PostField("50%"), formRequest("50%=x"), bad)
	check(t, "a field that is escaped", keyfuncs.PostField("50%"), formRequest("50%25=x"), "x")
}
