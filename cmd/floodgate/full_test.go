package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/policy"
)

// full is an output on a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnOutputThatCannotBeWrittenFailsTheCommand(t *testing.T) {
	good, log := file(t, "good.yaml", "policies: [{name: a, key: ip, limits: 1/h}]"), file(t, "access.log", accessLog(10))
	for name, args := range map[string][]string{
		"check": {"check", good}, "a warning": {"check", file(t, "limits.yaml", limits)}, "schema": {"schema"}, "a reference": {"schema", "--format", "markdown"}, "explain": {"explain", good},
		"a report": {"replay", good, log}, "a table": {"replay", good, log, "--format", "csv"}, "a page": {"replay", good, log, "--format", "html"}, "JSON": {"replay", good, log, "--format", "json"},
		"import": {"import", file(t, "mulesoft.yaml", ofMuleSoft)},
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), args, strings.NewReader(""), full{}, &errs); code != 1 || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%s: exit status %d, prints %q", name, code, &errs)
		}
	}
}

// Scripts compare them.
func TestTheExitStatusesAreThoseOfTheHelp(t *testing.T) {
	good, bad := file(t, "good.yaml", "policies: [{name: a, key: ip, limits: 1/h}]"), file(t, "bad.yaml", "a: 1")
	expect(t, 0, "", "check", good)
	expect(t, 1, "", "check", good, bad)
	expect(t, 2, "", "chek")
	if exitInterrupted != 130 {
		t.Errorf("after an interrupt: %d", exitInterrupted)
	}
}

// A policy file of the largest size is read, and a longer one is not read to its end.
func TestTheLargestPolicyFile(t *testing.T) {
	text := "policies: [{name: a, key: ip, limits: 1/h}]\n"
	comment := "#" + strings.Repeat("x", policy.MaxBytes-len(text)-2) + "\n"
	expect(t, 0, "", "check", file(t, "largest.yaml", text+comment))
	if _, errs := expect(t, 1, "", "check", file(t, "larger.yaml", text+comment+"\n")); !strings.Contains(errs, "has more than ") {
		t.Errorf("of a larger one: %s", errs)
	}
}

// The body has the type of a form, unless a header says otherwise.
func TestTheBodyThatExplainShows(t *testing.T) {
	path := file(t, "limits.yaml", "policies: [{name: a, key: 'form[\"user\"]', missing: own-bucket, limits: 1/h}, {name: b, key: 'header[\"content-type\"]', missing: own-bucket, limits: 1/h}]")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--method", "POST", "--data", "user=ann"}, []string{"key ann\n", "key application/x-www-form-urlencoded\n"}},
		{[]string{"--method", "POST", "--data", `{"user":"ann"}`, "--header", "Content-Type:application/json "}, []string{"rule a: one counter for all requests without a key\n", "key application/json\n"}},
		{[]string{"--method", "POST", "--data", "@" + file(t, "body", "user=bob")}, []string{"key bob\n", "key application/x-www-form-urlencoded\n"}},
		{[]string{"--method", "POST"}, []string{"rule a: one counter for all requests without a key\n", "rule b: one counter for all requests without a key\n"}},
	} {
		out, _ := expect(t, 0, "", append([]string{"explain", path}, c.args...)...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q lacks %q:\n%s", c.args, want, out)
			}
		}
	}
	for args, want := range map[string]string{
		"--data=@none":         "usage: --data: open none: ",
		"--path=":              `usage: --path: "": want a path such as /users/5?a=b`,
		"--method=":            `usage: --method: "": want a method such as GET`,
		"--method=G\x01T":      "usage: --method and --path: a server cannot read ",
		"--header=: x":         `usage: --header: ": x": want Name: value`,
		"--header=a b: x":      `usage: --header: "a b: x": want Name: value`,
		"--from=[2001:db8::1]": "", "--path=*": "", "--header=A:": "",
	} {
		code := 0
		if want != "" {
			code = 2
		}
		if _, errs := expect(t, code, "", "explain", path, args); !strings.HasPrefix(errs, want) {
			t.Errorf("%s: %q, want %q", args, errs, want)
		}
	}
}
