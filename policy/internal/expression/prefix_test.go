package expression

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPrefixes(t *testing.T) {
	for text, want := range map[string]string{ // "": an error
		"10.0.0.0/8": "10.0.0.0/8", "10.1.2.3": "10.1.2.3/32", "10.1.2.3/32": "10.1.2.3/32", "0.0.0.0/0": "0.0.0.0/0",
		"2001:db8::/32": "2001:db8::/32", "2001:db8::1": "2001:db8::1/128", "::/0": "::/0", "fe80::/10": "fe80::/10",
		// An IPv4 address in IPv6 is the IPv4 address. A prefix of such addresses would
		// contain none, because addresses are compared without that form.
		"::ffff:10.1.2.3": "10.1.2.3/32", "::ffff:10.0.0.0/104": "",
		"fe80::1%eth0": "", "fe80::%eth0/10": "",
		"": "", "x": "", "10.0.0": "", "10.0.0.0/33": "", "10.0.0.0/": "", "/8": "", "10.0.0.1/8": "", "2001:db8::1/32": "",
	} {
		got, err := ParsePrefix(text)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%q: %v (%v), want %q", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: the error does not name it: %v", text, err)
		}
	}
	if _, err := ParsePrefix("10.0.0.1/8"); err == nil || !strings.Contains(err.Error(), "10.0.0.0/8") {
		t.Errorf("the error does not say what to write: %v", err)
	}
}

func TestCIDROfAnyText(t *testing.T) {
	for text, want := range map[string]string{
		`cidr("10.200.0.1", "10.0.0.0/8")`: "true", `cidr("11.0.0.1", "10.0.0.0/8")`: "false",
		`cidr("11.0.0.1", "10.0.0.0/8", "11.0.0.0/8")`: "true",
		`cidr("::ffff:11.0.0.1", "10.0.0.0/8")`:        "false", `cidr("::ffff:10.0.0.1", "10.0.0.0/8")`: "true",
		`cidr("fe80::1%eth0", "fe80::/10")`: "true", `cidr("fe80::1", "10.0.0.0/8")`: "false",
		`cidr("nobody", "0.0.0.0/0", "::/0")`: "false", `cidr("", "0.0.0.0/0", "::/0")`: "false",
	} {
		if got, err := evaluate(t, text, httptest.NewRequest(http.MethodGet, "/", nil)); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", text, got, err, want)
		}
	}
}
