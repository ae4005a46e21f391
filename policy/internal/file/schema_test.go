package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
)

// described is what the schema says of a field.
type described struct {
	section, name string
	required      bool
	Description   string
	Default       json.RawMessage
	Examples      []json.RawMessage
	Enum          []string // the words of a choice
	Minimum       *int64
	Maximum       int64
}

// schemaFields returns what the schema says of all fields of a file.
func schemaFields(t *testing.T) (all []described) {
	t.Helper()
	type section struct {
		Required   []string
		Properties map[string]described
	}
	var doc struct {
		section
		Defs map[string]section `json:"$defs"`
	}
	text, err := os.ReadFile("../../schema.json")
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	doc.Defs["file"] = doc.section
	for name, s := range doc.Defs {
		for field, f := range s.Properties {
			f.section, f.name, f.required = name, field, slices.Contains(s.Required, field)
			all = append(all, f)
		}
	}
	return all
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
	"secret":    {"{store: {redis: {address: 'a:1', password: %s}}, policies: [{name: a, limits: 1/s}]}", nil},
	"local":     {"{local: %s, policies: [{name: a, limits: 1/s}]}", nil},
	"policy":    {"{store: {redis: {address: 'a:1'}}, policies: [%s]}", map[string]string{"name": "a", "limits": "1/s"}},
	"match":     {"{policies: [{name: a, limits: 1/s, match: %s}]}", nil},
	"limit":     {"{policies: [{name: a, limits: %s}]}", map[string]string{"maximumRequests": "10", "timePeriodInMilliseconds": "1"}},
	"on-denied": {"{policies: [{name: a, limits: 1/s, on-denied: %s}]}", map[string]string{"status": "500", "body": "none"}},
}

// fieldNeeds are the fields that others need in addition, or that they exclude ("").
var fieldNeeds = map[string]map[string]string{
	"store.memcached": {"redis": ""}, "store.synced": {"redis": ""},
	"policy.tiers":    {"limits": ""},
	"policy.tier":     {"limits": "", "tiers": "{default: 1/s}"},
	"policy.fallback": {"key": "path"}, "policy.missing": {"key": "path"},
	"policy.quotas": {"key": "path"},
}

// fileWith returns a file in which a field of a mapping has a value, or lacks if the value is "".
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

func readFine(t *testing.T, text string) *Spec {
	t.Helper()
	spec, problems := Read([]byte(text), Options{User: func(core.Request) string { return "" }, Tier: true})
	if len(problems) > 0 {
		t.Fatalf("%s\n%v", text, problems)
	}
	return spec
}

// The schema has each field that is read, and no other one, and says which have to be there.
func TestTheSchemaHasEveryField(t *testing.T) {
	fields := map[string][]string{}
	for _, f := range schemaFields(t) {
		fields[f.section] = append(fields[f.section], f.name)
		_, problems := Read([]byte(fileWith(t, f.section, f.name, "")), Options{Tier: true})
		missing := slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.Text, "the field "+f.name+" is missing") })
		if missing != (f.required || f.name == "limits") {
			t.Errorf("%s.%s: is it required? %t", f.section, f.name, missing)
		}
	}
	for section := range where {
		slices.Sort(fields[section])
		_, problems := Read([]byte(fileWith(t, section, "zzzzzzzzzzzzzzzzzz", "1")), Options{})
		_, list, _ := strings.Cut(fmt.Sprint(problems), "the fields here are ")
		list, _, _ = strings.Cut(list, "}")
		read := strings.Split(list, ", ")
		slices.Sort(read)
		if !slices.Equal(read, fields[section]) {
			t.Errorf("%s: read are %q, the schema has %q", section, read, fields[section])
		}
	}
}

// schemaRejects returns a function that asks the schema about a file.
func schemaRejects(t *testing.T) func(file string) bool {
	t.Helper()
	text, err := os.ReadFile("../../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema := c.MustCompile("schema.json")
	return func(file string) bool {
		t.Helper()
		asJSON, err := yaml.YAMLToJSON([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc) != nil
	}
}

// The schema takes each example. It rejects a field that is not there, a value of another type
// and a number out of range, and so does Read.
func TestTheSchemaChecksFieldsAndTypes(t *testing.T) {
	rejected := schemaRejects(t)
	for _, f := range schemaFields(t) {
		for _, value := range []string{"[[]]", "[]", `""`, `[""]`, "zzz"} {
			name := f.name
			if value == "zzz" {
				name = value
			}
			file := fileWith(t, f.section, name, value)
			if _, problems := Read([]byte(file), Options{Tier: true}); len(problems) == 0 || problems[0].Line == 0 || !rejected(file) {
				t.Errorf("%s is taken: %v", file, problems)
			}
		}
		if n := len(f.Enum); n > 0 {
			_, problems := Read([]byte(fileWith(t, f.section, f.name, "zzz")), Options{Tier: true})
			if want := "want " + strings.Join(f.Enum[:n-1], ", ") + " or " + f.Enum[n-1]; !strings.Contains(fmt.Sprint(problems), want) {
				t.Errorf("%s.%s: %v; the schema: %s", f.section, f.name, problems, want)
			}
		}
		for _, example := range f.Examples {
			if file := fileWith(t, f.section, f.name, string(example)); rejected(file) {
				t.Errorf("the schema rejects %s", file)
			}
		}
		if f.Minimum == nil {
			continue
		}
		for n, fits := range map[int64]bool{*f.Minimum: true, f.Maximum: true, *f.Minimum - 1: false, f.Maximum + 1: false} {
			file := fileWith(t, f.section, f.name, fmt.Sprint(n))
			if _, problems := Read([]byte(file), Options{Tier: true}); (len(problems) == 0) != fits || rejected(file) == fits {
				t.Errorf("%s: %v; the schema rejects it: %t", file, problems, rejected(file))
			}
		}
	}
}

// The reference has a row for each field, which says what the schema says.
func TestTheReferenceHasEveryField(t *testing.T) {
	text, err := os.ReadFile("../../../docs/file/policy-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, f := range schemaFields(t) {
		_, part, _ := strings.Cut(string(text), "\n## "+f.section+"\n")
		part, _, _ = strings.Cut(part, "\n## ")
		i := strings.Index(part, "\n| `"+f.name+"` | ") + 1
		if i == 0 {
			t.Errorf("%s.%s has no row", f.section, f.name)
			continue
		}
		row, _, _ := strings.Cut(part[i:], "\n")
		initial := "`" + strings.Trim(string(f.Default), `"`) + "`"
		if f.Default == nil {
			initial = ""
		}
		if f.required {
			initial = "required"
		}
		if f.Minimum != nil && !strings.Contains(row, fmt.Sprintf("a whole number from %d to %d", *f.Minimum, f.Maximum)) {
			t.Errorf("%s.%s: another range: %s", f.section, f.name, row)
		}
		if !strings.Contains(row, f.Description+" |") || !strings.Contains(row, initial) || strings.Count(row, "|") != 6 {
			t.Errorf("%s.%s: %s", f.section, f.name, row)
		}
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			rows++
		}
	}
	if want := len(schemaFields(t)); rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
}

// Each example of the schema is read and means something, and what the schema says is meant
// without a field is what the field means.
func TestTheExamplesAndDefaultsOfTheSchema(t *testing.T) {
	for _, f := range schemaFields(t) {
		t.Run(f.section+"."+f.name, func(t *testing.T) {
			without, problems := Read([]byte(fileWith(t, f.section, f.name, "")), Options{Tier: true})
			if len(f.Examples) == 0 || !strings.HasSuffix(f.Description, ".") {
				t.Error("want an example and a sentence")
			}
			for _, example := range f.Examples {
				if with := readFine(t, fileWith(t, f.section, f.name, string(example))); problems == nil && dump(with) == dump(without) {
					t.Errorf("the example %s changes nothing", example)
				}
			}
			if f.Default == nil || f.name == "cost" { // whose default is no expression at all
				return
			}
			if with := dump(readFine(t, fileWith(t, f.section, f.name, string(f.Default)))); with != dump(without) {
				t.Errorf("with %s:\n%s\nwithout:\n%s", f.Default, with, dump(without))
			}
		})
	}
}

// dump writes what a file says, without where it says so.
func dump(spec *Spec) string {
	var b strings.Builder
	var write func(v reflect.Value)
	write = func(v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[value](), v.Kind() == reflect.Func:
		case v.Type() == reflect.TypeFor[*expression.Sources]():
			s := v.Interface().(*expression.Sources)
			ip, err := s.IP(nil, floodgatetest.NewRequest("GET", "/", floodgatetest.From("10.9.0.1:1"), floodgatetest.Header("X-Real-IP", "2001:db8:1:2fe::"), floodgatetest.Header("X-Forwarded-For", "192.0.2.1")))
			fmt.Fprintf(&b, "%v %s %v ", s.Trusted, ip, err)
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
