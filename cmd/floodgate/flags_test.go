package main

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

// A wrong value is answered with the flag, the value and all that is allowed.
func TestAWrongValueOfAFlag(t *testing.T) {
	good := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]")
	const names = ": want NAME=FIELD such as time=when, where NAME is one of time, addr, user, method, target, status, route\n"
	for want, args := range map[string][]string{
		`--fields: "a=b": unknown name` + names:                                {"--fields", "a=b"},
		`--fields: "Time=b": unknown name` + names:                             {"--fields", "Time=b"},
		`--fields: "time": has no equals sign` + names:                         {"--fields", "time"},
		`--fields: "time=": the field is missing` + names:                      {"--fields", "addr=x,time="},
		`--fields: "time=y": the name is given twice` + names:                  {"--fields", "time=x", "--fields", "addr=z,time=y"},
		`--fields: "\"a": is not a comma-separated list` + names:               {"--fields", `"a`},
		`--top: "x": want a whole number` + "\n":                               {"--top", "x"},
		`--honest: "1.5": want a whole number` + "\n":                          {"--honest", "1.5"},
		`--sweep: "perhaps": want true or false` + "\n":                        {"--sweep=perhaps"},
		`--tolerance: "5": want a duration such as 5m` + "\n":                  {"--tolerance", "5"},
		`--format: "pdf": want text, csv, json or html` + "\n":                 {"--format", "pdf"},
		`--outliers: "drop": want leave-out or stop` + "\n":                    {"--outliers", "drop"},
		`--max-keys: 0: want 1 or more` + "\n":                                 {"--max-keys", "0"},
		"unknown flag: --nonsense\n":                                           {"--nonsense"},
		`--path: "` + strings.Repeat("x", 500) + `": want a path such as /use`: nil,
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
	take(t, service(t, server, path), 3, "ann")
	server.MustDo("CLIENT", "PAUSE", "500")
	if out, _ := expect(t, exitFine, "", "inspect", path, "--store", "redis://"+server.Addr, "--policy", "api", "--key", "ann", "--timeout", "30s"); !strings.Contains(out, " 3 ") {
		t.Error(out)
	}
}
