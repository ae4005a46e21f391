package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

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

// What the schema cannot tell: the insides of texts, and what depends on
// another place of the file or on the program.
var beyondTheSchema = []string{
	"a minute or a month", "a time zone that is none", "a time zone that is none in a field", "an hour of a calendar", "an hour of a calendar as text", "days for a month", "a token bucket by the calendar", "a synced store by the calendar", "a month in memcached", "a month as a timeout", "an algorithm as other libraries write it, in capital letters",
	"one equals sign", "a method of text", "an address in a text", "one ampersand", "one bar", "and in capitals", "buckets without a precision", "buckets without a precision in a field", "a password that is a variable", "a variable in braces as the password", "a method without quotes", "a key that is a bare word", "what others call the address", "a header with a dot",
	"a name twice", "a policy with the name of another one's rule", "names that are too long together", "a reserved name", "a unit that is none", "the second of two limits", "a quota too large", "a window too long", "a window of nothing",
	"a burst for a window", "a precision that does not divide", "an aligned bucket", "a log too large", "two limits that count the same",
	"a key of a name that is none", "a key with a name in no quotes", "a header alone", "a header's name with a space", "an expression that does not end",
	"an expression over two lines", "an expression with a loop", "an expression with a range", "an expression with a variable", "an expression that is a list",
	"an expression of a function that is not here", "a prefix that is none", "a prefix with bits behind it", "a prefix that is not constant", "cidr without a prefix",
	"an attribute that is not known", "a MuleSoft expression without its end", "a user whom nobody knows", "a regular expression that is not constant",
	"a regular expression that is none", "types that do not fit", "a star within a part", "two stars in the middle", "a regular expression in a path", "a plus in a path", "two parameters in one part of a path",
	"a colon inside a part of a path", "a query in a path", "the rest of a path in the middle", "the end of a path in the middle", "an optional parameter in the middle", "a when that is text",
	"counting shared without a store", "headers of two resets", "headers of two drafts that write the same", "headers of two policies that write the same", "headers off beside others", "a trusted header that can be none", "a trusted header twice", "an address in both lists", "an address in only and in deny", "an address that is none", "an address twice",
	"a cost that is text", "a header with a line's end", "a header with a bad name", "tiers that nothing chooses", "a rule twice", "a rule with tiers twice", "a rule with the name of a tier", "a tier with the name of a rule", "a tier with the name of the deny list", "a database of a cluster",
	"several addresses of no cluster", "several addresses of a PostgreSQL", "a PostgreSQL password from nowhere", "a PostgreSQL port that is none", "a password from nowhere", "a timeout too long", "a synced store's limits", "a synced store and what is in flight", "a window too long for memcached", "limits twice in two names",
	"quotas for other limits", "quotas too large for a log", "quotas for two limits of one window", "a wait too long", "a wait of a month",
	"two limits of what is in flight in one text", "two limits of what is in flight with other leases", "a lease in the text that is too short", "in-flight with a lease that is too short", "in-flight beside a zone",
	"in-flight beside aligned", "in-flight beside a burst", "in-flight beside a precision",
	// and what is no matter of schemas, as they see values only
	"a dry run of a limit in flight", "a tag", "two documents", "a quota in hexadecimal",
}

func TestTheSchemaRefusesBrokenFiles(t *testing.T) {
	s := compileSchema(t)
	known := map[string]bool{}
	for _, b := range brokenFiles(t) {
		known[b.name] = true
		err := validate(s, []byte(b.text))
		if beyond := slices.Contains(beyondTheSchema, b.name); beyond && err != nil {
			t.Errorf("%s: the schema can tell: %v", b.name, err)
		} else if !beyond && err == nil {
			t.Errorf("%s: the schema takes it", b.name)
		}
	}
	for _, name := range beyondTheSchema {
		if !known[name] {
			t.Errorf("there is no broken file %q", name)
		}
	}
}

// fieldValues are values of each kind, good and bad, for each field.
var fieldValues = map[string][]any{
	"name": {"a", "b.c-d_1", "", "a b", 5, nil}, "key": {"ip", `header["x"]`, "#[attributes.method]", "", 5, nil, []any{"ip"}}, "fallback": {"ip", "", true},
	"missing": {"skip", "reject", "own-bucket", "Skip", false}, "limits": {"3/6s", "10/s, 100/m", "100 per minute", "5 per 15 Minutes, 1 / second", "10/S", "10/5 s", "10 a minute", "9/day Europe/Berlin", "9 per month UTC fixed_window", "9/day berlin", "9/day \u212aiel", map[string]any{"quota": 3, "window": "month"}, map[string]any{"quota": 3, "window": "d", "zone": "UTC"}, map[string]any{"quota": 3, "window": "d", "zone": "utc"}, map[string]any{"quota": 3, "window": "1 d", "zone": "Asia/Kathmandu"}, "1/h sliding_window", 5, []any{"1/s", map[string]any{"quota": 3, "window": "2s"}}, []any{}, map[string]any{"maximumRequests": 3, "timePeriodInMilliseconds": 6000}, map[string]any{"maximumRequests": 3, "window": "6s"}, map[string]any{"quota": -1, "window": "6s"}, map[string]any{"quota": 1, "window": "6s", "algorithm": "sliding_log"}, "x"},
	"tier": {`header["x-plan"]`, 5}, "tiers": {map[string]any{"default": "1/s", "paid": "unlimited"}, map[string]any{"paid": "1/s"}, map[string]any{"default": 5}, []any{}},
	"match":    {map[string]any{"methods": []any{"GET"}, "paths": []any{"/a/*"}}, map[string]any{"when": "true"}, map[string]any{"methods": []any{"get"}}, map[string]any{"method": []any{"GET"}}, nil, map[string]any{"paths": []any{}}},
	"rules":    {[]any{map[string]any{"name": "r", "limits": "1/s"}}, []any{map[string]any{"limits": "1/s"}}, []any{}, []any{map[string]any{"name": "r", "limits": "1/s", "missing": "skip"}}},
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

// The schema accepts every file that the parser accepts, and the parser rejects
// every file that the schema rejects.
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
		switch {
		case parseErr == nil && schemaErr != nil:
			t.Fatalf("the parser takes %s, the schema says %v", text, schemaErr)
		case parseErr != nil && schemaErr == nil && !beyond(parseErr):
			t.Fatalf("the schema takes %s, the parser says %v", text, parseErr)
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

// beyond says that no schema could have told.
func beyond(err error) bool {
	for _, e := range policy.Errors(err) {
		known := false
		for _, text := range []string{"shared: the file has no store", "nothing says which tier", "aligned fixed_window", "stands twice", "cannot stand beside", "write the same headers"} {
			known = known || strings.Contains(e.Problem, text)
		}
		if !known {
			return false
		}
	}
	return true
}

func TestEveryFieldHasItsPlaceInTheSchema(t *testing.T) {
	var doc struct {
		Defs map[string]struct {
			Properties map[string]any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(policy.Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for name := range fieldValues {
		_, inPolicy := doc.Defs["policy"].Properties[name]
		_, inRule := doc.Defs["rule"].Properties[name]
		if (inPolicy || inRule) != (name != "nonsense") {
			t.Errorf("%s: is it in the schema? %t", name, inPolicy || inRule)
		}
	}
	// The parser lists its fields where it is given one that it does not know.
	_, err := policy.Parse("f", []byte("policies: [{name: a, limits: 1/s, zzzzzzzzzzzzzzzz: 1}]"))
	all := maps.Clone(doc.Defs["policy"].Properties)
	maps.Copy(all, doc.Defs["rule"].Properties)
	want := map[string]bool{}
	_, list, _ := strings.Cut(fmt.Sprint(err), "the fields here are ")
	for name := range strings.SplitSeq(strings.TrimSuffix(list, ")"), ", ") {
		want[name] = true
	}
	for name := range all {
		if !want[name] {
			t.Errorf("the schema has %q, the parser lists %v", name, list)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("the parser has %v beside what the schema has", want)
	}
}

// The schema and the reference are in the repository too, for editors and readers.
func TestTheFilesOfTheSchemaAndTheReferenceAreCurrent(t *testing.T) {
	for path, c := range map[string]struct{ want, command string }{
		"schema.json":                 {string(policy.Schema()), "go run ./cmd/floodgate schema > policy/schema.json"},
		"../docs/policy-reference.md": {policy.Reference(), "go run ./cmd/floodgate schema --format markdown > docs/policy-reference.md"},
	} {
		if text, err := os.ReadFile(path); err != nil || string(text) != c.want {
			t.Errorf("%s is not current (%v): %s", path, err, c.command)
		}
	}
}
