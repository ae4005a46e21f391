package policy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// broken is a file with something wrong, and what is to be said of it.
type broken struct{ name, text, want string }

// brokenFiles reads testdata/broken_files.txt: "=== name", the file, ">>>", the
// messages.
func brokenFiles(t testing.TB) (all []broken) {
	t.Helper()
	text, err := os.ReadFile("testdata/broken_files.txt")
	if err != nil {
		t.Fatal(err)
	}
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

func TestBrokenFilesAreRefusedInTheseWords(t *testing.T) {
	all := brokenFiles(t)
	if len(all) < 60 {
		t.Fatalf("only %d broken files", len(all))
	}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			s, err := policy.Parse("f.yaml", []byte(b.text))
			if err == nil {
				t.Fatal("it is taken", s.Close())
			}
			if err.Error() != b.want {
				t.Errorf("says:\n%v\nwant:\n%s", err, b.want)
			}
		})
	}
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

func TestFilesThatAreTooLarge(t *testing.T) {
	deep := "policies: " + strings.Repeat("[", 300) + strings.Repeat("]", 300)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 9) + "*" + string(c-1) + "]\n"
	}
	paths := "policies:\n  - {name: p, limits: 1/s, match: &m {paths: [" + strings.Repeat("/a,", 999) + "/a]}}\n"
	for i := range 200 {
		paths += fmt.Sprintf("  - {name: p%d, limits: 1/s, match: *m}\n", i)
	}
	for name, text := range map[string]string{
		"paths":    paths,
		"bytes":    strings.Repeat("#", 1<<20+1),
		"brackets": deep,
		"dashes":   "policies:\n  " + strings.Repeat("- ", 500) + "a\n",
		"aliases":  bomb + "policies: *i\n",
		"policies": "policies: [" + strings.Repeat("{name: a, limits: 1/s},", 1001) + "]",
		"values":   "policies:\n  - name: a\n    limits: 1/s\n    deny: [" + strings.Repeat("1.1.1.1,", 100_001) + "]",
	} {
		if s, err := policy.Parse(name, []byte(text)); err == nil {
			t.Errorf("%s: is taken: %v", name, s.Close())
		} else if len(err.Error()) > 100_000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// What would take the parser long is refused before it is parsed, and the error
// says why. What is just within the bounds takes memory in proportion to its size.
func TestFilesThatWouldTakeMuch(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"mappings in one line":       {strings.Repeat("a: ", 1<<20/3), "f: has more than 100000 values"},
		"anchors":                    {strings.Repeat("&a ", 1<<20/3), "f: has more than 10000 anchors and aliases"},
		"aliases":                    {"x: [" + strings.Repeat("*a, ", 1<<18-2) + "]", "f: has more than 10000 anchors and aliases"},
		"questions":                  {strings.Repeat("? ", 1<<19), "f: has more than 100000 values"},
		"tags":                       {"a: " + strings.Repeat("!a ", 1<<18), "f: has more than 100000 values"},
		"brackets":                   {strings.Repeat("[", 1<<20), "f: brackets are nested more than 200 deep"},
		"lists":                      {strings.Repeat("- ", 5000), "f: lists are nested more than 200 deep"},
		"mappings within the bounds": {strings.Repeat("a: ", 30_000), "f:1:4: is no YAML: mapping value is not allowed in this context"},
		"anchors within the bounds":  {strings.Repeat("&a ", 9_000), "f:1:4: is no YAML: "},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := policy.Parse("f", []byte(c.text))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: is taken: %v", name, s.Close())
		} else if !strings.HasPrefix(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.200s", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 100<<20 {
			t.Errorf("%s: %d MB are allocated", name, used>>20)
		}
	}
}

func TestAByteOrderMark(t *testing.T) {
	const text = "policies: [{name: a, limits: 1/h}]"
	set, err := policy.Parse("f", []byte("\xef\xbb\xbf"+text))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if _, err := policy.Parse("f", []byte(mark+"p\x00")); err == nil || err.Error() != "f:1:1: is text in UTF-16 (save the file as UTF-8)" {
			t.Errorf("%q: %v", mark, err)
		}
	}
}

// The parser's time grows with the square of a mapping's fields.
func TestMappingsWithManyFields(t *testing.T) {
	const many = "a mapping has more than 1000 fields"
	var distinct strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&distinct, "  k%d: 1\n", i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"one key again":     {strings.Repeat("policies: []\n", 3000), "f: line 1001: " + many},
		"distinct keys":     {"local:\n" + distinct.String(), "f: line 1002: " + many},
		"keys in brackets":  {"local: {" + strings.Repeat("a,", 3000) + "}", "f: line 1: " + many},
		"with comments":     {strings.Repeat("a:\n# b\n\n", 1500), "f: line 3001: " + many},
		"in a list":         {"policies:\n- a: 1\n" + distinct.String(), "f: line 1002: " + many},
		"a list's commas":   {"policies: [" + strings.Repeat("a,", 100_001) + "]", "f: has more than 100000 values"},
		"1000 fields":       {strings.Repeat("a: 1\n", 1000), "f:1:1: a: there is no such field"},
		"a long name":       {strings.Repeat("a", 900_000) + ": 1\n", "f:1:1: aaa"},
		"a bracket in text": {"a: '['\nb: \"{\"\n# [\n" + strings.Repeat("c: 1\n", 1000), "f: line 1002: " + many},
	} {
		s, err := policy.Parse("f", []byte(c.text))
		if err == nil {
			t.Errorf("%s: is taken: %v", name, s.Close())
		} else if !strings.HasPrefix(err.Error(), c.want) || len(err.Error()) > 20_000 {
			t.Errorf("%s: an error of %d bytes: %.200s", name, len(err.Error()), err)
		}
	}
}

// The first hundred errors of a file are reported, and how many there are more.
func TestErrorsOfAFile(t *testing.T) {
	for n, want := range map[int]string{1: "", 99: "", 100: "", 101: "f: and 1 more errors", 300: "f: and 200 more errors"} {
		text := "policies:\n"
		for i := range n {
			text += fmt.Sprintf("  - {name: p%d, limits: 1/h, cost: -1}\n", i)
		}
		_, err := policy.Parse("f", []byte(text))
		all := policy.Errors(err)
		last := ""
		if len(all) > 100 {
			last = all[100].Error()
		}
		if len(all) != min(n, 101) || last != want {
			t.Errorf("%d errors: %d are reported, the last of which is %v", n, len(all), all[len(all)-1])
		}
	}
}

// A file of many policies has many fields, but no mapping has.
func TestMappingsOfManyPolicies(t *testing.T) {
	for name, line := range map[string]string{
		"lines":    "  - name: p%d\n    limits: 1/h\n    key: ip\n",
		"brackets": "  - {name: p%d, limits: 1/h, key: ip}\n",
	} {
		text := "policies:\n"
		for i := range 600 {
			text += fmt.Sprintf(line, i)
		}
		set, err := policy.Parse("f", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A password is in no message, whatever is wrong with it.
func TestNoMessageHasAPassword(t *testing.T) {
	for _, value := range []string{`{env: A, file: B, text: hunter2}`, `[hunter2]`, `{hunter2}`, "hunter2\n  }", `"hunter2`} {
		_, err := policy.Parse("f", []byte("store:\n  redis:\n    address: a:1\n    db: -1\n    password: "+value+"\npolicies: [{name: a, limits: 1/s}]"))
		if err == nil {
			t.Errorf("%s is taken", value)
		} else if strings.Contains(err.Error(), "hunter2") && !strings.Contains(value, "{") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// What is legal and probably a mistake is said, and logged once.
func TestWarnings(t *testing.T) {
	for text, want := range map[string][]string{
		`policies: [{name: a, key: ip, limits: 1/h}]`: nil,
		`policies: [{name: a, key: ip, limits: 9/d bucketed_window precision=1m}]
local: {max-keys: 5000}`: nil,
		`policies: [{name: a, limits: 1/h}, {name: b, key: 'header["x"]', missing: reject, limits: 1/h}]`:                                                                                  nil,
		`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/h}]`:                                                                                                             {"policies[0].key: \"header[\\\"x\\\"]\": a client that changes the header"},
		`policies: [{name: a, key: 'cookie["x"] + ip', limits: 1/h}, {name: b, key: ip, limits: 1/h, dry-run: true}]`:                                                                      {"policies[0].key: "},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {paths: [/x]}}, {name: b, limits: 1/h, match: {paths: [/y]}}]`:                                       {"policies[0].key: "},
		`policies: [{name: a, key: ip, tier: 'header["x-plan"]', tiers: {default: 1/h, staff: unlimited}}]`:                                                                                {"policies[0].tier: \"header[\\\"x-plan\\\"]\": a client writes the header itself, and so chooses its tier (have the program"},
		`policies: [{name: a, limits: 1/h, cost: 'int(json["n"])'}, {name: b, limits: 1/h, cost: 'len(path)'}]`:                                                                            {"policies[0].cost: \"int(json[\\\"n\\\"])\": a client writes the JSON field itself, and so chooses what its request costs (see"},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {paths: [/x]}}, {name: b, limits: 1/h}]`:                                                             nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, limits: 1/h, match: {paths: [/x]}}]`:                                                             {"policies[0].key: "},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {methods: [GET]}}, {name: b, limits: 1/h}]`:                                                          nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {methods: [GET]}}, {name: b, limits: 1/h, match: {methods: [GET]}}]`:                                 nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, limits: 1/h, match: {methods: [GET]}}]`:                                                          {"policies[0].key: "},
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, match: {methods: [GET]}}, {name: b, limits: 1/h, match: {methods: [PUT]}}]`:                                 {"policies[0].key: "},
		`policies: [{name: a, key: route, limits: 1/h}]`:                                                                                                                                   {"policies[0].key: \"route\": the route is known only"},
		`policies: [{name: a, limits: 9/h}, {name: b, key: 'header["x"]', limits: 1/h}]`:                                                                                                   {"policies[1].key: \"header[\\\"x\\\"]\": all requests without it share one counter (write fallback: ip"},
		`policies: [{name: a, limits: 9/h}, {name: b, key: user, limits: 1/h}]`:                                                                                                            {"policies[1].key: \"user\": all requests without it share one counter ("},
		`policies: [{name: a, limits: 9/h}, {name: b, key: user, fallback: 'cookie["c"]', limits: 1/h}]`:                                                                                   {"policies[1].key: \"user\": all requests without it share"},
		`policies: [{name: a, limits: 9/h}, {name: b, key: user, fallback: ip, limits: 1/h}]`:                                                                                              nil,
		`policies: [{name: a, limits: 9/h}, {name: b, key: user, missing: own-bucket, limits: 1/h}]`:                                                                                       nil,
		`policies: [{name: b, key: user, missing: skip, limits: 1/h}]`:                                                                                                                     nil,
		`policies: [{name: b, key: 'method + user', limits: 1/h}]`:                                                                                                                         nil,
		`{trusted-headers: [X-Plan, x-id], policies: [{name: a, key: 'header["X-ID"]', missing: reject, tier: 'header["x-plan"]', tiers: {default: 1/h}, cost: 'len(header["x-plan"])'}]}`: nil,
		`{trusted-headers: [X-Id], policies: [{name: a, key: 'header["x-id"] + header["x"]', missing: reject, limits: 1/h}]}`:                                                              {"policies[0].key: "},
		`{trusted-headers: [X-Id], policies: [{name: a, key: 'query["x-id"]', missing: reject, limits: 1/h}]}`:                                                                             {"policies[0].key: \"query[\\\"x-id\\\"]\": a client that changes"},
		`policies: [{name: a, limits: ["9/m, 0/h"]}, {name: b, limits: 1/s}]`:                                                                                                              {"policies[0].limits[0]: \"0/h\": denies all requests (write 1 or more"},
		`policies: [{name: a, limits: {maximumRequests: 0, timePeriodInMilliseconds: 1000}}]`:                                                                                              {"policies[0].limits.maximumRequests: 0: denies all requests (write 1 or more"},
		`policies: [{name: a, key: "#[attributes.headers['x']]", missing: skip, limits: 1/h}]`:                                                                                             {"policies[0].key: "},
		`policies: [{name: a, limits: 1/h, only: [10.0.0.0/8], deny: [10.0.0.0/16]}]`:                                                                                                      nil,
		`policies: [{name: a, limits: 9/h}, {name: b, key: 'param["id"]', missing: skip, limits: 1/h}]`:                                                                                    {"policies[1].key: \"param[\\\"id\\\"]\": the parameters of a route are known only to policies that are mounted after routing"},
		`policies: [{name: b, key: 'param["id"]', missing: reject, limits: 1/h}]`:                                                                                                          {"policies[0].key: \"param[\\\"id\\\"]\": the parameters of a route", "policies[0].key: \"param[\\\"id\\\"]\": a client that changes the path parameter gets another counter"},
		`policies: [{name: a, key: ip, quotas: {s: 0}, limits: 1/s}]`:                                                                                                                      {"policies[0].quotas: 0: denies all requests of the key (write 1 or more"},
		`policies: [{name: a, key: ip, quotas: {s: 5/s, t: unlimited}, limits: 1/s}]`:                                                                                                      nil,
		`policies: [{name: a, exempt: [11.0.0.0/8], limits: 1/s}]`:                                                                                                                         nil,
		`policies: [{name: a, key: 'header["x"]', fallback: route, limits: 1/s}, {name: b, key: ip, limits: 1/s}]`:                                                                         {"policies[0].key: \"header[\\\"x\\\"]\": all requests without it", "policies[0].fallback: \"route\": the route is known only"},
		`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s}, {name: b, key: ip, limits: 1/s, match: {when: 'method == "GET"'}}]`:                                          {"policies[0].key: \"header"},
		`policies: [{name: a, key: 'header["x"]', fallback: ip, limits: 1/s, match: {paths: [/a]}}, {name: b, key: ip, limits: 1/s, match: {paths: [/a]}}]`:                                nil,
		`policies: [{name: a, limits: 1/s, wait: 1m}]`:                                                                                                                                     nil,
		`{local: {max-waiting-of-key: 3}, policies: [{name: a, limits: 1/s, wait: 1s}]}`:                                                                                                   nil,
		// A dry run limits nobody: it needs no other rule, and none can rely on it.
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h, dry-run: true}]`:                                  nil,
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, key: ip, limits: 1/h, dry-run: true}]`: {"policies[0].key: \"query[\\\"x\\\"]\": a client that changes the query parameter"},
		// Nor can one rely on a rule whose tier a client chooses.
		`policies: [{name: a, key: 'query["x"]', missing: reject, limits: 1/h}, {name: b, key: ip, tier: 'header["t"]', tiers: {default: 1/h, staff: unlimited}}]`: {"policies[1].tier: ", "policies[0].key: \"query[\\\"x\\\"]\": a client that changes the query parameter"},
		`policies: [{name: a, key: user, fallback: route, limits: 1/h}]`:                                                                                           {"policies[0].key: \"user\": all requests without it share", "policies[0].fallback: \"route\": the route is known only"},
	} {
		var log bytes.Buffer
		set, err := policy.Parse("f", []byte(text), policy.WithUser(func(core.Request) string { return "" }), policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		all := set.Warnings()
		if len(all) != len(want) {
			t.Errorf("%s: %v", text, all)
		}
		for i := range min(len(all), len(want)) {
			if all[i].File != "f" || all[i].Line != 1 || all[i].Column == 0 || all[i].Hint == "" || !strings.Contains(all[i].Error(), want[i]) {
				t.Errorf("%s:\n%v\nwant\n%s", text, all[i], want[i])
			}
		}
		if err := set.Replace([]byte(text)); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != len(want) {
			t.Errorf("%s: %d warnings are logged:\n%s", text, n, &log)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A list of denied addresses is for CORS preflights too.
func TestADeniedAddressSendsNoPreflight(t *testing.T) {
	s := newSite(t, `policies: [{name: all, limits: 0/s, match: {paths: [/api/**]}, deny: [10.6.0.0/16], exempt: [10.6.6.6]}]`)
	preflight := []option{header("Origin", "https://a.example"), header("Access-Control-Request-Method", "PUT")}
	s.expect(403, "OPTIONS", "/api/x", append(preflight, from("10.6.0.1"))...)
	s.expect(200, "OPTIONS", "/api/x", append(preflight, from("10.6.6.6"))...)
	s.expect(200, "OPTIONS", "/api/x", append(preflight, from("10.7.0.1"))...)
	s.expect(200, "OPTIONS", "/other", append(preflight, from("10.6.0.1"))...)
}

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(policy.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate asks the schema about a file's text.
func validate(s *jsonschema.Schema, text []byte) error {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// fieldValues are values of each kind, good and bad, for each field.
var fieldValues = map[string][]any{
	"name": {"a", "b.c-d_1", "", "a b", 5, nil}, "key": {"ip", `header["x"]`, "#[attributes.method]", "", 5, nil, []any{"ip"}}, "fallback": {"ip", "", true},
	"missing": {"skip", "reject", "own-bucket", "Skip", false}, "limits": {"3/6s", "10/s, 100/m", "100 per minute", "5 per 15 Minutes, 1 / second", "10/S", "10/5 s", "10 a minute", "9/day Europe/Berlin", "9 per month UTC fixed_window", "9/day berlin", "9/day \u212aiel", map[string]any{"quota": 3, "window": "month"}, map[string]any{"quota": 3, "window": "d", "zone": "UTC"}, map[string]any{"quota": 3, "window": "d", "zone": "utc"}, map[string]any{"quota": 3, "window": "1 d", "zone": "Asia/Kathmandu"}, "1/h sliding_window", 5, []any{"1/s", map[string]any{"quota": 3, "window": "2s"}}, []any{}, map[string]any{"maximumRequests": 3, "timePeriodInMilliseconds": 6000}, map[string]any{"maximumRequests": 3, "window": "6s"}, map[string]any{"quota": -1, "window": "6s"}, map[string]any{"quota": 1, "window": "6s", "algorithm": "sliding_log"}, "x"},
	"tier": {`header["x-plan"]`, 5}, "tiers": {map[string]any{"default": "1/s", "paid": "unlimited"}, map[string]any{"paid": "1/s"}, map[string]any{"default": 5}, []any{}},
	"match":    {map[string]any{"methods": []any{"GET"}, "paths": []any{"/a/*"}}, map[string]any{"when": "true"}, map[string]any{"methods": []any{"get"}}, map[string]any{"method": []any{"GET"}}, nil, map[string]any{"paths": []any{}}},
	"counting": {"shared", "local", "global"}, "headers": {"draft-10", "off", []any{"draft-10", "x-seconds"}, []any{}, true, []any{"draft-10", "draft-10"}}, "dry-run": {true, false, "true"}, "wait": {"2s", "500ms", "0s", "2h", "-2s", 2, 0, ""},
	"exempt": {[]any{"10.0.0.0/8", "::1"}, []any{}, "10.0.0.1"}, "only": {[]any{"10.0.0.0/8", "::1"}, []any{}, "10.0.0.1"}, "deny": {[]any{"10.1.0.0/16"}, []any{5}}, "cost": {1, 0, -1, "len(path)", 1.5, ""},
	"on-denied": {map[string]any{"status": 503, "body": "no"}, map[string]any{"status": 200}, map[string]any{"content-type": "text/plain"}, map[string]any{"headers": map[string]any{"X": "y"}}, map[string]any{}},
	"nonsense":  {1},
}

var storeValues = []any{
	map[string]any{"redis": map[string]any{"address": "a:1", "password": map[string]any{"file": "x"}}}, map[string]any{"redis": map[string]any{"address": []any{"a:1", "b:1"}, "cluster": true}},
	map[string]any{"redis": map[string]any{}}, map[string]any{"memcached": map[string]any{"servers": []any{"a:1"}, "timeout": "50ms"}, "on-failure": "fail-open", "instances": 4},
	map[string]any{"memcached": map[string]any{"servers": []any{"a:1"}}, "remember-denials": false}, map[string]any{"memcached": map[string]any{"servers": []any{"a:1"}}, "remember-denials": "no"},
	map[string]any{"memcached": map[string]any{"servers": []any{}}}, map[string]any{"on-failure": "fail-open"}, map[string]any{"redis": map[string]any{"address": "a"}}, "redis", nil,
	map[string]any{"redis": map[string]any{"address": "a:1"}, "memcached": map[string]any{"servers": []any{"a:1"}}}, map[string]any{"redis": map[string]any{"address": "a:1"}, "on-failure": "shut"},
	map[string]any{"synced": map[string]any{"redis": map[string]any{"address": "a:1"}}, "instances": 3},
	map[string]any{"synced": map[string]any{"postgres": map[string]any{"address": "a:1", "user": "u", "database": "d"}}}, map[string]any{"synced": map[string]any{"postgres": map[string]any{"address": "a:1"}}},
	map[string]any{"synced": map[string]any{"postgres": map[string]any{"address": "a:1", "user": "u", "database": ""}}}, map[string]any{"synced": map[string]any{"interval": "1s"}},
}

// The schema accepts every file that the parser accepts.
func TestTheSchemaTakesWhatTheParserTakes(t *testing.T) {
	s := compileSchema(t)
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		file := map[string]any{}
		if rapid.Bool().Draw(t, "store") {
			file["store"] = rapid.SampledFrom(storeValues).Draw(t, "the store")
		}
		p := map[string]any{"name": "a", "limits": "1/s"}
		names := slices.Sorted(maps.Keys(fieldValues))
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID).Draw(t, "fields") {
			p[name] = rapid.SampledFrom(fieldValues[name]).Draw(t, name)
		}
		if rapid.IntRange(0, 9).Draw(t, "without limits") < 3 {
			delete(p, "limits")
		}
		file["policies"] = []any{p}
		text, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		store := core.Must(core.NewMemory(core.MemoryConfig{}))
		defer store.Close() //nolint:errcheck // it is not used
		set, parseErr := policy.Parse("f", text, policy.WithStore(store))
		schemaErr := validate(s, text)
		if parseErr == nil && schemaErr != nil {
			t.Fatalf("the parser takes %s, the schema says %v", text, schemaErr)
		}
		if parseErr == nil {
			taken++
			_ = set.Close()
		}
	})
	if taken < 5 && !testing.Short() {
		t.Errorf("only %d files were taken: the test sees nothing", taken)
	}
}
