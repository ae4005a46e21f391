package file

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestTheListsThatAPolicyHas(t *testing.T) {
	list := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		p           Policy
		has, denies bool
	}{
		{Policy{}, false, false}, {Policy{Exempt: list}, true, false}, {Policy{Only: list}, true, true}, {Policy{Deny: list}, true, true},
		{Policy{Exempt: list, Only: list}, true, true}, {Policy{Exempt: list, Deny: list}, true, true}, {Policy{Only: list, Deny: list}, true, true},
	} {
		if c.p.HasLists() != c.has || c.p.Denies() != c.denies {
			t.Errorf("%d exempt, %d only, %d deny: has lists: %v, denies: %v", len(c.p.Exempt), len(c.p.Only), len(c.p.Deny), c.p.HasLists(), c.p.Denies())
		}
	}
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

// The reference says what is meant without a field, and with which other fields it
// cannot stand.
func TestTheWordsOfTheReference(t *testing.T) {
	for want, all := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		if got := enumerate(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, f := range map[string]description{
		"required": {required: true, initial: "1"}, "`1`": {initial: "1", without: "x"}, "x": {without: "x"}, "none": {},
	} {
		if got := f.absent(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	plain, of := excludes{field: "f", others: []string{"a", "b"}}, excludes{field: "f", values: []string{"x", "y"}, others: []string{"a"}}
	if got := sentences([]constraint{plain, needs{}, of}); !strings.HasPrefix(got, "With `f`, there is no `a` and `b`. ") || !strings.HasSuffix(got, " With `f: x` or `f: y`, there is no `a`.") {
		t.Errorf("%q", got)
	}
	if a, b := plain.schema(), of.schema(); len(a[0].value.(object)) != 1 || len(b[0].value.(object)) != 2 {
		t.Errorf("%v, %v", a, b)
	}
}

// A constraint of a field's value holds for that value alone.
func TestAFieldThatExcludesOthersByItsValue(t *testing.T) {
	for text, want := range map[string]string{"{f: x, a: 1}": "a is wrong", "{f: z, a: 1}": "", "{a: 1}": "", "{f: x}": "", "{f: x, b: 1}": ""} {
		e := excludes{field: "f", values: []string{"x", "y"}, others: []string{"a"}, problem: func(name string) string { return name + " is wrong" }}
		r, given := &reader{}, map[string]value{}
		pairs, _ := r.pairs(node(t, text), "a mapping")
		for _, p := range pairs {
			given[p.name] = p.value
		}
		holds := e.holds(r, value{}, given)
		if holds != (want == "") || len(r.errs) > 0 && r.errs[0].Text != want || holds != (len(r.errs) == 0) {
			t.Errorf("%s: %v, %v, want %q", text, holds, r.errs, want)
		}
	}
}

// The schema says that the items of a list differ only if they must.
func TestTheSchemaOfAListWhoseItemsDiffer(t *testing.T) {
	for _, unique := range []bool{true, false} {
		var key func(string) string
		if unique {
			key = strings.ToLower
		}
		look := list(name(), 3, "a list", key).shape
		if got := strings.Contains(fmt.Sprint(look.schema(&definitions{index: map[string]int{}})), "uniqueItems"); got != unique {
			t.Errorf("items differ: %v, want %v", got, unique)
		}
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
