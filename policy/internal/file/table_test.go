package file

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
)

// sections returns all mappings of a file.
func sections() []*section {
	file, _ := root()
	w := &referenceWriter{usedBy: map[string][]string{}}
	w.collect(file.section())
	return w.sections
}

// lacking returns what the description of a field lacks.
func lacking(f description) (all []string) {
	sentence := strings.TrimSuffix(f.about, ".")
	if sentence == f.about || len(sentence) < 8 || strings.Contains(sentence, ". ") {
		all = append(all, "one sentence that says what the field means")
	}
	if f.example == "" {
		all = append(all, "an example")
	}
	if f.shape.words == "" {
		all = append(all, "words for the type")
	}
	if f.required && f.initial+f.without != "" || f.initial != "" && f.without != "" {
		all = append(all, "one default")
	}
	return all
}

func TestEveryFieldIsDescribed(t *testing.T) {
	fields := 0
	for _, s := range sections() {
		if s.name == "" || !strings.HasSuffix(s.about, ".") {
			t.Errorf("section %q is about %q", s.name, s.about)
		}
		for _, f := range s.fields {
			if fields++; lacking(f) != nil {
				t.Errorf("%s.%s lacks %s", s.name, f.name, strings.Join(lacking(f), " and "))
			}
		}
	}
	if fields < 60 {
		t.Errorf("only %d fields are described", fields)
	}
	fine := description{name: "a", about: "The name of it.", example: "x", shape: always("text", nil)}
	for what, spoil := range map[string]func(*description){
		"sentence": func(d *description) { d.about = "" }, "example": func(d *description) { d.example = "" },
		"words": func(d *description) { d.shape.words = "" }, "default": func(d *description) { d.required, d.initial = true, "1" },
	} {
		broken := fine
		if spoil(&broken); len(lacking(broken)) != 1 || !strings.Contains(lacking(broken)[0], what) || lacking(fine) != nil {
			t.Errorf("a field without its %s lacks %v", what, lacking(broken))
		}
	}
}

func TestTheReferenceHasEveryField(t *testing.T) {
	text, repeated := Reference(), 0
	for _, s := range sections() {
		_, part, found := strings.Cut(text, "\n## "+s.name+"\n")
		if !found {
			t.Errorf("there is no heading %s", s.name)
		}
		part, _, _ = strings.Cut(part, "\n## ")
		for _, f := range s.fields {
			if s.repeats(f) { // then another section has it
				repeated++
				continue
			}
			i := slices.IndexFunc(strings.Split(part, "\n"), func(line string) bool { return strings.HasPrefix(line, "| `"+f.name+"` | ") })
			if i < 0 {
				t.Errorf("%s.%s has no row", s.name, f.name)
				continue
			}
			row := strings.Split(part, "\n")[i]
			for _, want := range []string{f.about, f.example, f.absent(), f.shape.words} {
				if !strings.Contains(row, strings.ReplaceAll(want, "|", `\|`)) {
					t.Errorf("%s.%s: the row lacks %q: %s", s.name, f.name, want, row)
				}
			}
			if n := strings.Count(strings.ReplaceAll(row, `\|`, ""), "|"); n != 6 {
				t.Errorf("%s.%s: %d bars in %s", s.name, f.name, n, row)
			}
		}
	}
	if repeated != 8 {
		t.Errorf("%d fields of a policy are described as those of a rule, want 8", repeated)
	}
}

func TestTheSchemaDescribesEveryField(t *testing.T) {
	type part struct {
		Required   []string
		Properties map[string]map[string]any
	}
	var doc struct {
		part
		Defs map[string]part `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, s := range sections() {
		in := doc.Defs[s.name]
		if s.name == "file" {
			in = doc.part
		}
		if len(in.Properties) != len(s.fields) {
			t.Errorf("%s: %d properties, want %d", s.name, len(in.Properties), len(s.fields))
		}
		for _, f := range s.fields {
			p := in.Properties[f.name]
			if p["description"] != f.about || slices.Contains(in.Required, f.name) != f.required || (p["default"] != nil) != (f.initial != "") {
				t.Errorf("%s.%s: %v", s.name, f.name, p)
			}
		}
	}
}

// where has for each mapping a file with the mapping's place as %s, and the fields
// that the mapping needs.
var where = map[string]struct {
	file   string
	fields map[string]string
}{
	"file":      {"%s", map[string]string{"policies": "[{name: a, limits: 1/s}]"}},
	"client-ip": {"{client-ip: %s, policies: [{name: a, limits: 1/s}]}", map[string]string{"trusted-proxies": "[10.9.0.0/16]", "header": "X-Real-IP"}},
	"store":     {"{store: %s, policies: [{name: a, limits: 1/s aligned}]}", map[string]string{"redis": "{address: 'a:1'}"}},
	"redis":     {"{store: {redis: %s}, policies: [{name: a, limits: 1/s}]}", map[string]string{"address": "'a:1'"}},
	"memcached": {"{store: {memcached: %s}, policies: [{name: a, limits: 1/s}]}", map[string]string{"servers": "'a:1'"}},
	"synced":    {"{store: {synced: %s}, policies: [{name: a, limits: 1/s aligned}]}", map[string]string{"redis": "{address: 'a:1'}"}},
	"postgres":  {"{store: {synced: {postgres: %s}}, policies: [{name: a, limits: 1/s aligned}]}", map[string]string{"address": "'a:1'", "user": "u", "database": "d"}},
	"secret":    {"{store: {redis: {address: 'a:1', password: %s}}, policies: [{name: a, limits: 1/s}]}", nil},
	"local":     {"{local: %s, policies: [{name: a, limits: 1/s}]}", nil},
	"policy":    {"{store: {redis: {address: 'a:1'}}, policies: [%s]}", map[string]string{"name": "a", "limits": "1/s"}},
	"match":     {"{policies: [{name: a, limits: 1/s, match: %s}]}", nil},
	"rule":      {"{policies: [{name: a, rules: [%s]}]}", map[string]string{"name": "r", "limits": "1/s"}},
	"limit":     {"{policies: [{name: a, limits: %s}]}", map[string]string{"quota": "10", "window": "1m"}},
	"on-denied": {"{policies: [{name: a, limits: 1/s, on-denied: %s}]}", map[string]string{"status": "500", "body": "no"}},
}

// fieldNeeds are the fields that others need in addition, or that they exclude ("").
var fieldNeeds = map[string]map[string]string{
	"store.memcached": {"redis": ""}, "store.synced": {"redis": ""}, "synced.postgres": {"redis": ""},
	"policy.rules": {"limits": ""}, "policy.tiers": {"limits": ""}, "rule.tiers": {"limits": ""},
	"policy.tier": {"limits": "", "tiers": "{default: 1/s}"}, "rule.tier": {"limits": "", "tiers": "{default: 1/s}"},
	"policy.fallback": {"key": "path"}, "policy.missing": {"key": "path"}, "rule.fallback": {"key": "path"}, "rule.missing": {"key": "path"},
	"policy.quotas": {"key": "path"}, "rule.quotas": {"key": "path"},
	"limit.maximumRequests": {"quota": "", "window": "", "timePeriodInMilliseconds": "5"}, "limit.timePeriodInMilliseconds": {"quota": "", "window": "", "maximumRequests": "5"},
	"limit.burst": {"algorithm": "token_bucket"}, "limit.precision": {"algorithm": "bucketed_window"}, "limit.zone": {"window": "day"},
}

// fileWith returns a file in which a field of a mapping has a value, or lacks if the
// value is "".
func fileWith(t *testing.T, section, field, value string) string {
	t.Helper()
	place, known := where[section]
	if !known {
		t.Fatalf("%s: this test does not know where such a mapping stands", section)
	}
	fields := map[string]string{}
	for _, more := range []map[string]string{place.fields, fieldNeeds[section+"."+field], {field: value}} {
		for name, text := range more {
			fields[name] = text
		}
	}
	var parts []string
	for name, text := range fields {
		if text != "" {
			parts = append(parts, name+": "+text)
		}
	}
	slices.Sort(parts)
	return fmt.Sprintf(place.file, "{"+strings.Join(parts, ", ")+"}")
}

// quotedValue returns a value as it is written in a mapping in braces.
func quotedValue(text string) string {
	if strings.ContainsAny(text[:1], "[{'") || !strings.ContainsAny(text, ":,\"[{ ") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

func readFine(t *testing.T, text string) *Spec {
	t.Helper()
	spec, problems := Read([]byte(text), Options{User: func(core.Request) string { return "" }, Tier: true})
	if len(problems) > 0 {
		t.Fatalf("%s\n%v", text, problems)
	}
	return spec
}

func TestEveryExampleIsRead(t *testing.T) {
	for _, s := range sections() {
		for _, f := range s.fields {
			t.Run(s.name+"."+f.name, func(t *testing.T) {
				spec := readFine(t, fileWith(t, s.name, f.name, quotedValue(f.example)))
				if f.required || f.name == "limits" {
					return
				}
				if without, problems := Read([]byte(fileWith(t, s.name, f.name, "")), Options{Tier: true}); len(problems) == 0 && dump(without) == dump(spec) {
					t.Errorf("the example %s changes nothing", f.example)
				}
			})
		}
	}
}

// What the tables say is meant without a field is what the field means.
func TestEveryDefaultIsTheOneThatIsMeant(t *testing.T) {
	for _, s := range sections() {
		for _, f := range s.fields {
			if f.initial == "" || f.name == "cost" { // whose default is no expression at all
				continue
			}
			t.Run(s.name+"."+f.name, func(t *testing.T) {
				with, without := dump(readFine(t, fileWith(t, s.name, f.name, quotedValue(f.initial)))), dump(readFine(t, fileWith(t, s.name, f.name, "")))
				if with != without {
					t.Errorf("with %s:\n%s\nwithout:\n%s", f.initial, with, without)
				}
			})
		}
	}
}

// dump writes what a file says, without where it says so.
func dump(spec *Spec) string {
	var b strings.Builder
	var write func(v reflect.Value)
	write = func(v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[value](), v.Kind() == reflect.Func, v.Type() == reflect.TypeFor[*expression.Sources]():
		case v.Type() == reflect.TypeFor[*expression.Expression]() && !v.IsNil():
			fmt.Fprintf(&b, "%v ", v.MethodByName("String").Call(nil)[0])
		case v.Type() == reflect.TypeFor[netip.Prefix]() && v.CanInterface():
			fmt.Fprintf(&b, "%v ", v.Interface())
		case v.Kind() == reflect.Pointer && !v.IsNil():
			write(v.Elem())
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				if f := v.Field(i); v.Type().Field(i).IsExported() || f.CanInt() || f.Kind() == reflect.String || f.Kind() == reflect.Slice || v.Type() == reflect.TypeFor[Spec]() {
					fmt.Fprintf(&b, "%s=", v.Type().Field(i).Name)
					write(f)
				}
			}
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				write(v.Index(i))
			}
		default:
			fmt.Fprintf(&b, "%v ", v)
		}
	}
	write(reflect.ValueOf(spec))
	return b.String()
}

func TestTheLargestFile(t *testing.T) {
	text := "policies: [{name: a, limits: 1/s}] #"
	text += strings.Repeat("x", MaxBytes-len(text))
	if got := readText(text); got != "" {
		t.Error(got)
	}
	if got := readText(text + "x"); !strings.HasPrefix(got, "0:0: has more than 1048576 bytes") {
		t.Error(got)
	}
}

// An alias is the value of its own anchor, and a message names the field from the
// beginning of the file.
func TestAliasesAndFields(t *testing.T) {
	spec := readFine(t, "policies: [{name: a, limits: &one 1/s}, {name: b, limits: &two 2/s}, {name: c, limits: *one}, {name: d, limits: *two}]")
	for i, want := range []int64{1, 2, 1, 2} {
		if got := spec.Policies[i].Rules[0].Limits[0].Quota; got != want {
			t.Errorf("policy %d has a quota of %d, want %d", i, got, want)
		}
	}
	for text, want := range map[string]string{
		"policies: [{name: a, limits: {quota: x, window: 1s}}]": "policies[0].limits.quota", "name: [a]\npolicies: [{name: a, limits: 1/s}]": "name",
	} {
		if _, problems := Read([]byte(text), Options{}); len(problems) != 1 || problems[0].Field != want {
			t.Errorf("%s: %+v, want the field %s", text, problems, want)
		}
	}
}
