package paths

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
)

// spelled is a request of which a middleware has changed one spelling of the path.
type spelled struct {
	core.Request
	escaped, decoded, route string
}

func (r spelled) EscapedPath() string { return r.escaped }
func (r spelled) Path() string        { return r.decoded }
func (r spelled) Route() string       { return r.route }

// seeSpelled calls see with the path of such a request.
func seeSpelled(t *testing.T, escaped, decoded, route string, see func(p *Path)) {
	t.Helper()
	requesttest.See(t, httptest.NewRequest(http.MethodGet, "/", nil), func(r core.Request) {
		see(Of(spelled{r, escaped, decoded, route}))
	})
}

// A router may go by either spelling of the path, so a pattern is compared with both.
func TestAPatternMatchesEitherSpelling(t *testing.T) {
	for _, c := range []struct {
		pattern, escaped, decoded, route string
		want                             bool
	}{
		{"/items/*", "/items/7", "/x", "", true},
		{"/items/*", "/x", "/items/7", "", true},
		{"/items/*", "/x", "/y", "", false},
		{"/items/*", "/x", "/items//7", "", true},
		{"/items/*", "/x", "/y/..", "", true},
		{"/items/*", "", "/items/7", "", true},
		{"/", "", "/items/7", "", false}, // there is no second spelling
		{"/", "/x", "", "", true},
		{"/", "/x", "/x", "", false},

		{"/files/big", "/filesbig", "/other", "/files*", true},
		{"/files/big", "/other", "/filesbig", "/files*", true},
		{"/files/big", "/filesx", "/filesbig", "/files*", true},
		{"/files/big", "/filesx", "/filesy", "/files*", false},
		{"/", "/filesx", "/other", "/files*", false}, // one spelling is of this route
	} {
		p, problem, _ := Parse(c.pattern)
		if problem != "" {
			t.Fatal(problem)
		}
		seeSpelled(t, c.escaped, c.decoded, c.route, func(path *Path) {
			if got := path.Matches([]Pattern{p}); got != c.want {
				t.Errorf("%s matches %q, decoded %q, by the route %q: %t, want %t", c.pattern, c.escaped, c.decoded, c.route, got, c.want)
			}
		})
	}
}

// readAll returns the readings of an escaped path.
func readAll(path string) *readings {
	r := new(readings)
	r.forms[0] = r.read(path, nil)
	return r
}

// A path beyond the bounds of the comparison matches every pattern, and one that
// just keeps to them does not.
func TestTheBoundsOfAPath(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		every bool
	}{
		"encoded eight times":         {"/%" + strings.Repeat("25", maxDecodings-2) + "41", false},
		"encoded nine times":          {"/%" + strings.Repeat("25", maxDecodings-1) + "41", true},
		"slashes in a segment":        {"/" + strings.Repeat("a%2f", maxInner-1), false},
		"too many slashes":            {"/" + strings.Repeat("a%2f", maxInner), true},
		"slashes of both kinds":       {"/" + strings.Repeat("a%2f", maxInner/2) + strings.Repeat("a%5c", maxInner/2), true},
		"fewer slashes of both kinds": {"/" + strings.Repeat("a%2f", maxInner/2) + strings.Repeat("a%5c", maxInner/2-1), false},
		"odd segments":                {strings.Repeat("/.", maxOddSegments), false},
		"too many odd segments":       {strings.Repeat("/.", maxOddSegments+1), true},
		"many segments":               {strings.Repeat("/a", maxOddSegments+1), false},
		"dots":                        {"/a/..", true},
		"dots in a segment":           {"/a%2f..%2fb", true},
	} {
		if got := readAll(c.path).every; got != c.every {
			t.Errorf("%s: matches every pattern: %v", name, got)
		}
	}
}

// decode undoes one round of what url.PathEscape does, and keeps what is no escape.
func TestDecode(t *testing.T) {
	const digits, capitals = "0123456789abcdef", "0123456789ABCDEF"
	for c := range 256 {
		for _, set := range []string{digits, capitals} {
			for _, text := range []string{"%s", "x%s", "%sx"} {
				escaped := strings.Replace(text, "%s", "%"+string(set[c>>4])+string(set[c&15]), 1)
				if got, want := decode(escaped), strings.Replace(text, "%s", string([]byte{byte(c)}), 1); got != want {
					t.Errorf("%s becomes %q, want %q", escaped, got, want)
				}
			}
		}
		if escape := "%" + string([]byte{byte(c), '0'}); !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) && c != '%' && c != '+' && decode(escape) != escape {
			t.Errorf("%q becomes %q", escape, decode(escape))
		}
	}
	for _, text := range []string{"%", "%4", "x%", "x%4", "%g0", "%0g", "%%"} {
		if got := decode(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := decode("a+b%2B"); got != "a b+" {
		t.Errorf("%q", got)
	}
}
