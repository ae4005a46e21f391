package keyfuncs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestBehindHops(t *testing.T) {
	for _, row := range []struct {
		name, header string
		hops         int
		lines        []string
		want         string
		why          string // of the fallback
	}{
		{"one proxy", "X-Forwarded-For", 1, []string{"203.0.113.9"}, "203.0.113.9", ""},
		{"one proxy, and the client prepends", "X-Forwarded-For", 1, []string{"6.6.6.6, 203.0.113.9"}, "203.0.113.9", ""},
		{"two proxies", "X-Forwarded-For", 2, []string{"203.0.113.9, 198.51.100.1"}, "203.0.113.9", ""},
		{"two proxies, and the client prepends", "X-Forwarded-For", 2, []string{"6.6.6.6, 203.0.113.9, 198.51.100.1"}, "203.0.113.9", ""},
		{"two lines", "x-forwarded-for", 2, []string{"6.6.6.6, 203.0.113.9", "198.51.100.1"}, "203.0.113.9", ""},
		{"Forwarded", "Forwarded", 2, []string{"for=6.6.6.6, for=203.0.113.9;proto=https, for=198.51.100.1"}, "203.0.113.9", ""},
		{"private addresses are hops like others", "X-Forwarded-For", 1, []string{"203.0.113.9, 10.0.0.7"}, "10.0.0.7", ""},
		{"fewer addresses than proxies", "X-Forwarded-For", 2, []string{"6.6.6.6"}, "192.0.2.1", "fewer addresses"},
		{"no header", "X-Forwarded-For", 1, nil, "192.0.2.1", "missing"},
		{"an empty header", "X-Forwarded-For", 1, []string{" , "}, "192.0.2.1", "missing"},
		{"the client's part is no address", "X-Forwarded-For", 2, []string{"6.6.6.6, nonsense, 198.51.100.1"}, "198.51.100.1", "no address"},
		{"nonsense that is not read", "X-Forwarded-For", 1, []string{"nonsense, 203.0.113.9"}, "203.0.113.9", ""},
		{"32 proxies", "X-Forwarded-For", 32, []string{"6.6.6.6, 203.0.113.9" + strings.Repeat(", 10.0.0.1", 31)}, "203.0.113.9", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var why []string
			f := keyfuncs.ClientIP(keyfuncs.BehindHops(row.header, row.hops),
				keyfuncs.OnFallback(func(_ core.Request, err error) { why = append(why, err.Error()) }))
			header := map[string][]string{}
			if row.lines != nil {
				name := "X-Forwarded-For"
				if row.header == "Forwarded" {
					name = "Forwarded"
				}
				header[name] = row.lines
			}
			if got := keyOf(t, f, &request{remote: "192.0.2.1:1234", header: header}); got != row.want {
				t.Errorf("key %q, want %q", got, row.want)
			}
			if got := strings.Join(why, "; "); (got != "") != (row.why != "") || !strings.Contains(got, row.why) {
				t.Errorf("fallback %q, want %q", got, row.why)
			}
		})
	}
}

func TestBehindHopsErrorsNameTheOptionAndItsValue(t *testing.T) {
	for _, row := range []struct {
		options []keyfuncs.ClientIPOption
		want    []string
	}{
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("X-Forwarded-For", 0)}, []string{"BehindHops", "0 hops", "1 to 32"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("X-Forwarded-For", -1)}, []string{"BehindHops", "-1 hops"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("X-Forwarded-For", 33)}, []string{"BehindHops", "33 hops"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("X-Real-IP", 1)}, []string{"BehindHops", `"X-Real-IP"`, "X-Forwarded-For or Forwarded"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("", 1)}, []string{"BehindHops", `""`}},
		{[]keyfuncs.ClientIPOption{keyfuncs.BehindHops("Forwarded", 1), keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8")}, []string{"the only header", "Forwarded"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Forwarded-For", "0.0.0.0/0")}, []string{"Behind", `"0.0.0.0/0"`, "every client", "BehindHops"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Forwarded-For", "10.0.0.0/8", "::/0")}, []string{`"::/0"`, "every client"}},
		{[]keyfuncs.ClientIPOption{keyfuncs.Behind("X-Forwarded-For", "::ffff:0:0/96")}, []string{`"::ffff:0:0/96"`, "every client"}},
	} {
		_, err := keyfuncs.NewClientIP(row.options...)
		if !errors.Is(err, core.ErrConfig) {
			t.Errorf("error %v does not wrap ErrConfig", err)
			continue
		}
		for _, want := range row.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
	}
}

func ExampleBehindHops() {
	ip := keyfuncs.ClientIP(keyfuncs.BehindHops("X-Forwarded-For", 2))
	show(ip, &request{remote: "10.1.2.3:80", header: headers("X-Forwarded-For", "203.0.113.9, 198.51.100.1")})
	// Output: "203.0.113.9" <nil>
}
