package policy_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/policy"
)

// broken is a file with something wrong, and what is to be said of it.
type broken struct{ name, text, want string }

// brokenFiles reads testdata/broken_files.txt: "=== name", the file, ">>>", the messages.
func brokenFiles(t testing.TB) (all []broken) {
	t.Helper()
	text, err := os.ReadFile("testdata/broken_files.txt")
	must(t, err)
	for _, block := range strings.Split("\n"+string(text), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		file, want, found := strings.Cut(rest, ">>>\n")
		if !found {
			t.Fatalf("%s: there is no >>>", name)
		}
		all = append(all, broken{name, file, strings.TrimSuffix(want, "\n")})
	}
	return all
}

// Each mistake of a file is reported with its place and a hint. The parser may say more.
func TestBrokenFiles(t *testing.T) {
	for _, b := range brokenFiles(t) {
		s, err := policy.Parse("f.yaml", []byte(b.text))
		if err == nil {
			t.Errorf("%s: it is taken %v", b.name, s.Close())
			continue
		}
		same := func(got, want string) bool {
			return got == want || strings.Contains(want, "is no YAML") && strings.HasPrefix(got, want)
		}
		if !slices.EqualFunc(strings.Split(err.Error(), "\n"), strings.Split(b.want, "\n"), same) {
			t.Errorf("%s: says\n%v\nwant\n%s", b.name, err, b.want)
		}
	}
}

// No text makes the parser panic, or refuse a file without saying where.
func FuzzParse(f *testing.F) {
	for _, b := range brokenFiles(f) {
		f.Add([]byte(b.text))
	}
	f.Add([]byte("policies: [{name: a, key: 'form[\"a\"]', limits: 3/6s}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		store := core.Must(core.NewMemory(core.MemoryConfig{}))
		defer store.Close() //nolint:errcheck // it is not used
		s, err := policy.Parse("f", text, policy.WithStore(store), policy.Log(slog.New(slog.DiscardHandler)))
		if err != nil {
			if len(policy.Errors(err)) == 0 {
				t.Errorf("an error without a place: %v", err)
			}
			return
		}
		r := floodgatetest.NewRequest("POST", "/a/b?x=1", floodgatetest.Form("a", "b"))
		s.Check(r)
		s.Explain(r)
		must(t, s.Close())
	})
}

func TestErrorsHavePlaces(t *testing.T) {
	_, err := policy.Parse("f.yaml", []byte("policies:\n  - name: a b\n    limits: 1/s\n    cost: -1\n"))
	all := policy.Errors(err)
	if len(all) != 2 {
		t.Fatalf("%d errors, want 2: %v", len(all), err)
	}
	want := policy.Error{File: "f.yaml", Line: 4, Column: 11, Field: "policies[0].cost", Problem: "-1: want a whole number from 0 to 2147483647"}
	if *all[1] != want {
		t.Errorf("%+v, want %+v", *all[1], want)
	}
	var single *policy.Error
	if !errors.As(err, &single) || single.Line != 2 {
		t.Errorf("errors.As finds %+v", single)
	}
	if policy.Errors(errors.New("another")) != nil || policy.Errors(nil) != nil {
		t.Error("Errors finds what is not there")
	}
}

// A file has bounds. A file of many policies is within them.
func TestFilesThatAreTooLarge(t *testing.T) {
	many := "policies:\n"
	for i := range 600 {
		many += fmt.Sprintf("  - {name: p%d, limits: 1/h, key: ip}\n", i)
	}
	for text, tooLarge := range map[string]bool{
		many:                         false,
		strings.Repeat("#", 1<<20+1): true,
		"policies: [{name: a, limits: 1/h}]\n#" + strings.Repeat("#", 1<<20-36):                    false,
		"name: " + strings.Repeat("n", 56) + "\npolicies: [{name: a, limits: 1/h, dry-run: true}]": false,
		"policies: " + strings.Repeat("[", 300) + strings.Repeat("]", 300):                         true,
		"policies:\n  " + strings.Repeat("- ", 500) + "a\n":                                        true,
	} {
		path := filepath.Join(t.TempDir(), "f")
		write(t, path, text)
		s, err := policy.Load(path)
		if (err != nil) != tooLarge || err != nil && (len(err.Error()) > 1000 || !strings.HasPrefix(err.Error(), path+":")) {
			t.Errorf("%.60s: %.200v", text, err)
		}
		if err == nil {
			must(t, s.Close())
		}
	}
}

// Some editors write a byte order mark, and a carriage return before each line feed.
func TestAByteOrderMark(t *testing.T) {
	const text = "policies:\r\n  - name: a\r\n    limits: 1/h\r\n"
	set, err := policy.Parse("f", []byte("\xef\xbb\xbf"+text))
	must(t, err)
	must(t, set.Close())
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if _, err := policy.Parse("f", []byte(mark+"p\x00")); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q: %v", mark, err)
		}
	}
}

// The log and Warnings say what is legal and probably a mistake.
func TestWarnings(t *testing.T) {
	const ip = "{name: ip, key: ip, limits: 9/h}"
	for file, want := range map[string][]string{ // what a client chooses or may lack, and the field
		`policies: [` + ip + `]`: nil,
		// A key that a client chooses needs another policy for the same requests, with a key that it cannot choose.
		`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/h}]`:                                                                                                       {"policies[0].key: header gets another counter"},
		`policies: [{name: a, key: 'ip + cookie["x"]', limits: 1/h}]`:                                                                                                                {"policies[0].key: cookie gets another counter"},
		`policies: [{name: a, key: "#[attributes.headers['x']]", missing: skip, limits: 1/h}]`:                                                                                       {"policies[0].key: header gets another counter"},
		`policies: [{name: a, key: 'param["id"]', missing: reject, limits: 1/h}]`:                                                                                                    {"policies[0].key: path parameter gets another counter"},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {methods: [GET], paths: [/x]}}, ` + ip + `]`:                                                   nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, limits: 1/h, match: {paths: [/x]}}]`:                                                       {"policies[0].key: query parameter gets"},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, limits: 1/h, match: {methods: [GET]}}]`:                                                    {"policies[0].key: query parameter gets"},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, limits: 1/h, match: {when: 'ip != ""'}}]`:                                                  {"policies[0].key: query parameter gets"},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, key: ip, limits: 1/h, dry-run: true}]`:                                                     {"policies[0].key: query parameter gets"},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, dry-run: true}]`:                                                                                      nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {methods: [GET], paths: [/x]}}, {name: b, limits: 1/h, match: {methods: [GET], paths: [/x]}}]`: nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, key: ip, tier: 'header["t"]', tiers: {default: 1/h, staff: unlimited}}]`:                   {"policies[1].tier: header itself, and so chooses its tier", "policies[0].key: query parameter gets"},
		`policies: [{name: a, key: ip, tier: 'query["t"]', tiers: {default: 1/h, staff: unlimited}}]`:                                                                                {"policies[0].tier: query parameter itself"},
		`policies: [{name: a, limits: 1/h, cost: 'int(json["n"])'}, {name: b, limits: 1/h, cost: 'len(path)'}]`:                                                                      {"policies[0].cost: JSON field itself, and so chooses what its request costs", "policies[1].cost: path itself"},
		// Handlers accept few methods, and many spellings of a path.
		`policies: [{name: a, key: path, limits: 1/h}]`:                                               {"policies[0].key: path gets another counter"},
		`policies: [{name: a, key: method, limits: 1/h}, {name: b, key: user + method, limits: 1/h}]`: nil,
		// A header that the operator's proxy writes is not the client's.
		`{trusted-headers: [X-Plan, x-id], policies: [{name: a, key: 'header["X-ID"]', missing: reject, tier: 'header["x-plan"]', tiers: {default: 1/h}, cost: 'len(header["x-plan"])'}]}`: nil,
		`{trusted-headers: [X-Id], policies: [{name: a, key: 'header["x-id"] + header["x"]', missing: reject, limits: 1/h}]}`:                                                              {"policies[0].key: header gets another counter"},
		`{trusted-headers: [X-Id], policies: [{name: a, key: 'header["x-id"] + query["q"]', missing: reject, limits: 1/h}]}`:                                                               {"policies[0].key: query parameter gets"},
		// Slots are not counted in the process while Redis is gone.
		`{name: f, store: {redis: {address: "127.0.0.1:1"}, on-failure: local}, policies: [{name: a, in-flight: 3}]}`:            {"policies[0].in-flight: get 503"},
		`{name: f, store: {redis: {address: "127.0.0.1:1"}, on-failure: fail-open}, policies: [{name: a, in-flight: 3}]}`:        {"policies[0].in-flight: get 503"},
		`{name: f, store: {redis: {address: "127.0.0.1:1"}, on-failure: fail-closed}, policies: [{name: a, in-flight: 3}]}`:      nil,
		`{name: f, store: {redis: {address: "127.0.0.1:1"}}, policies: [{name: a, limits: 1/h, in-flight: 3, counting: local}]}`: nil,
		// A request may lack the key.
		`policies: [` + ip + `, {name: b, key: user, limits: 1/h}]`:                          {"policies[1].key: all requests without it share one counter"},
		`policies: [` + ip + `, {name: b, key: user, fallback: 'cookie["c"]', limits: 1/h}]`: {"policies[1].key: all requests without it share one counter"},
		`policies: [` + ip + `, {name: b, key: user, fallback: ip, limits: 1/h}]`:            nil,
		`policies: [` + ip + `, {name: b, key: user, missing: own-bucket, limits: 1/h}]`:     nil,
	} {
		var log bytes.Buffer
		set, err := policy.Parse("f", []byte(file), policy.WithUser(func(core.Request) string { return "" }), policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
		must(t, err)
		all := set.Warnings()
		if len(all) != len(want) {
			t.Errorf("%s: %v", file, all)
		}
		for i := range min(len(all), len(want)) {
			field, text, _ := strings.Cut(want[i], ": ")
			if w := all[i]; w.File != "f" || w.Line != 1 || w.Column == 0 || w.Hint == "" || w.Field != field || strings.HasPrefix(w.Problem, `"":`) ||
				!strings.Contains(w.Problem, text) || !strings.Contains(log.String(), fmt.Sprintf("file=f line=1 field=%s problem=%q hint=%q", w.Field, w.Problem, w.Hint)) {
				t.Errorf("%s:\n%v\nwant\n%s", file, w, want[i])
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != len(want) {
			t.Errorf("%s: %d warnings are logged:\n%s", file, n, &log)
		}
		must(t, set.Close())
	}
}
