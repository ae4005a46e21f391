package policy_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

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
