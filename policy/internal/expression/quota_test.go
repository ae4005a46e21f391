package expression

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/requesttest"
)

// A quota is a number from 0 to the largest one or the text of a row; nothing and
// empty text leave the limits' own. Everything else is a bad request.
func TestTheQuotaOfARequest(t *testing.T) {
	const most int64 = core.MaxQuota
	limit := core.PerMinute(1)
	for text, want := range map[string]string{
		`0`: "0", `5`: "5", `5.9`: "5", fmt.Sprint(most): fmt.Sprint(most), fmt.Sprintf("%d.5", most): fmt.Sprint(most),
		fmt.Sprint(most + 1): "bad", `-1`: "bad", `float("NaN")`: "bad", `query["n"] == "7" ? true : 1`: "bad",
		`nil`: "own", `query["none"]`: "own", `query["n"]`: "7", `query["n"] + "/m"`: "7", `query["n"] + "/x"`: "bad", `"unlimited"`: fmt.Sprint(core.Unlimited),
		`int(query["x"])`: "bad",
	} {
		e, bad := Compile(text, testSources())
		if bad != nil {
			t.Fatalf("%s: %s", text, bad.Problem)
		}
		requesttest.See(t, httptest.NewRequest(http.MethodGet, "/?n=7&x=y", nil), func(r core.Request) {
			row, given, err := e.Quota(r)
			got := "own"
			if quota, found := row.Quota(&limit); given && found {
				got = fmt.Sprint(quota)
			}
			if errors.Is(err, core.ErrBadRequest) {
				got = "bad"
			}
			if got != want {
				t.Errorf("%s: %s (%v), want %s", text, got, err, want)
			}
		})
	}
}

// What a policy is told of an expression: whether its values are text, whether they
// are the same for all requests, and what a request without a key lacks.
func TestWhatIsKnownOfAnExpression(t *testing.T) {
	for text, want := range map[string]struct {
		isText, constant bool
		lacks            string
	}{
		`"a"`:                            {true, true, ""},
		`1 + 1`:                          {false, true, ""},
		`len(path)`:                      {false, false, ""},
		`query["n"] == "7" ? 1 : "x"`:    {true, false, ""},
		`header["X-Api-Key"]`:            {true, false, `the header "X-Api-Key" is missing`},
		`json["user.name"]`:              {true, false, `the JSON field "user.name" is missing`},
		`header["X-Real-Ip"]`:            {true, false, ""}, // a proxy writes it
		`header["X-Api-Key"] + cookie.a`: {true, false, ""},
		`path`:                           {true, false, ""},
	} {
		sources := testSources()
		sources.Trusted = []string{"X-Real-IP"}
		e, bad := Compile(text, sources)
		if bad != nil {
			t.Fatalf("%s: %s", text, bad.Problem)
		}
		if e.MayBeText() != want.isText || e.Constant() != want.constant || e.Lacks() != want.lacks {
			t.Errorf("%s: may be text: %v, constant: %v, lacks %q", text, e.MayBeText(), e.Constant(), e.Lacks())
		}
	}
}

// The hint about a header's name is for an expression that is nothing but the name.
func TestAnExpressionThatIsTheNameOfAHeader(t *testing.T) {
	for text, want := range map[string]string{
		`zzzzzzzz`: `; the header of this name is header["zzzzzzzz"]; for one counter of all requests, leave the key out`, `zzzzzzzz + path`: "",
	} {
		hint := "known are method, path, route, ip, user, header, query, param, cookie, form, json and cidr"
		if _, bad := Compile(text, testSources()); bad == nil || bad.Hint != hint+want {
			t.Errorf("%s: %+v, want the hint %s", text, bad, hint+want)
		}
	}
}

// withMemo is a request that remembers the client's address.
type withMemo struct {
	core.Request
	memo AddressMemo
}

func (r *withMemo) Value(key any) any {
	if key == (AddressMemoKey{}) {
		return &r.memo
	}
	return r.Request.Value(key)
}

// A request is asked once for its address. A policy with other proxies asks anew.
func TestTheAddressIsRemembered(t *testing.T) {
	asked := 0
	by := func(address string) *Sources {
		return &Sources{Address: func(dst []byte, _ core.Request) ([]byte, error) {
			asked++
			return append(dst, address...), nil
		}}
	}
	requesttest.See(t, httptest.NewRequest(http.MethodGet, "/", nil), func(r core.Request) {
		m, one, other, none := &withMemo{Request: r}, by("10.0.0.1"), by("10.0.0.2"), by("")
		for _, step := range []struct {
			by    *Sources
			want  string
			asked int
		}{{one, "10.0.0.1", 1}, {one, "10.0.0.1", 1}, {other, "10.0.0.2", 2}, {other, "10.0.0.2", 2}, {one, "10.0.0.1", 3}, {none, "invalid IP", 4}, {none, "invalid IP", 4}} {
			if got := step.by.AddressOf(m).String(); got != step.want || asked != step.asked {
				t.Errorf("the address is %s after %d questions, want %s after %d", got, asked, step.want, step.asked)
			}
		}
	})
}

// A parameter of the route is a value, also of the second expression that reads it.
func TestAParameterOfTwoExpressions(t *testing.T) {
	sources := testSources()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetPathValue("id", "7")
	for range 2 {
		e, bad := Compile(`param["id"]`, sources)
		if bad != nil {
			t.Fatal(bad.Problem)
		}
		requesttest.See(t, r, func(r core.Request) {
			if key, err := e.Key(nil, r); string(key) != "7" || err != nil {
				t.Errorf("%q, %v", key, err)
			}
		})
	}
}
