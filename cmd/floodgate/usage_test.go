package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
)

// A wrong value is answered with the flag, the value and all that is allowed.
func TestAWrongValueOfAFlag(t *testing.T) {
	good := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]")
	for want, args := range map[string][]string{
		`--fields: "a=b": want NAME=FIELD such as time=when, where NAME is one of time, addr, user, method, target, status, route` + "\n": {"--fields", "a=b"},
		`--fields: "time=": want NAME=FIELD`:                                                      {"--fields", "addr=x,time="},
		`invalid argument "time" for "--fields" flag: time must be formatted as key=value` + "\n": {"--fields", "time"},
		`--top: "x": want a whole number` + "\n":                                                  {"--top", "x"},
		`--honest: "1.5": want a whole number` + "\n":                                             {"--honest", "1.5"},
		`--honest: 0: want 1 or more` + "\n":                                                      {"--honest", "0"},
		`--sweep: "perhaps": want true or false` + "\n":                                           {"--sweep=perhaps"},
		`--format: "pdf": want text, json or html` + "\n":                                         {"--format", "pdf"},
		"unknown flag: --nonsense\n":                                                              {"--nonsense"},
		`--path: "` + strings.Repeat("x", 500) + `": want a path such as /use`:                    nil,
	} {
		command := append([]string{"replay", good, "-"}, args...)
		if args == nil {
			command = []string{"explain", good, "--path", strings.Repeat("x", 500)}
		}
		if _, errs := expect(t, exitUsage, "", command...); !strings.HasPrefix(errs, "usage: "+want) {
			t.Errorf("%q says\n%swant\nusage: %s", args, errs, want)
		}
	}
}

func TestFieldsOfOnesOwn(t *testing.T) {
	good := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]")
	mine := file(t, "mine.log", `{"a,b":1795000000,"who":"a","what":"GET","where":"/"}`)
	out, _ := expect(t, 0, "", "replay", good, mine, "--fields", `"time=a,b",addr=who`, "--fields", "method=what,target=where")
	if !strings.Contains(out, "1 line, 1 request from") {
		t.Errorf("says %s", out)
	}
}

// The server may take half a second to answer, which is longer than the store's own
// timeout.
func TestTheTimeoutOfAStoreIsThatOfTheFlag(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 10/h}]")
	take(t, serviceOf(t, server, path), 3, "ann")
	server.MustDo("CLIENT", "PAUSE", "500")
	if out, _ := expect(t, exitFine, "", "inspect", path, "--store", "redis://"+server.Addr, "--policy", "api", "--key", "ann", "--timeout", "30s"); !strings.Contains(out, " 3 ") {
		t.Error(out)
	}
}

// full is an output on a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnOutputThatCannotBeWrittenFailsTheCommand(t *testing.T) {
	good, log := file(t, "good.yaml", "policies: [{name: a, key: ip, limits: 1/h}]"), file(t, "access.log", accessLog(10))
	for name, args := range map[string][]string{
		"check": {"check", good}, "a warning": {"check", file(t, "limits.yaml", limits)}, "schema": {"schema"}, "a reference": {"schema", "--format", "markdown"}, "explain": {"explain", good},
		"a report": {"replay", good, log}, "a page": {"replay", good, log, "--format", "html"}, "JSON": {"replay", good, log, "--format", "json"},
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

// go-redis logs each failed connection to the standard error. The command prints
// one line instead.
func TestAStoreThatIsGoneIsOneLineOfErrors(t *testing.T) {
	path := file(t, "limits.yaml", "policies: [{name: a, key: ip, limits: 1/h}]")
	var errs bytes.Buffer
	c := exec.CommandContext(t.Context(), os.Args[0], "top", path, "--store", "redis://127.0.0.1:1")
	c.Env, c.Stderr = append(os.Environ(), asProgram+"=1"), &errs
	if err := c.Run(); err == nil {
		t.Error("there is no error")
	}
	if got := errs.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "floodgate: redis://127.0.0.1:1: ") {
		t.Errorf("prints %q, want one line", got)
	}
}
