//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryOperatorAndConstantIsBroken(t *testing.T) {
	const text = `-- a < 1
local n, s = -1, 'a < \' 2' -- not 3
if not a or n >= 10 and #s ~= 3 then return max(n + 1, 5 % 2) .. 'x' end
for i = 1, floor(n - 1) do t[i] = i * 2 == true end
`
	want := strings.Fields("1→2 not→ or→and >=→> 10→11 and→or ~=→== 3→4 max→math.min +→- 1→2 5→6 %→* 2→3 1→2 floor→math.ceil -→+ 1→2 *→/ 2→3 ==→~= true→false")
	all, err := mutants("f.lua", text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.old+"→"+m.new)
		broken := m.apply(text)
		if len(broken)-len(text) != len(m.new)-len(m.old) || broken == text {
			t.Errorf("%v: %q", m, broken)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
	if m := all[3]; m.line != 3 || m.source != `if not a or n «>=» 10 and #s ~= 3 then return max(n + 1, 5 % 2) .. 'x' end` {
		t.Errorf("%+v", m)
	}
	if _, err := mutants("f.lua", "local s = 'a"); err == nil {
		t.Error("a string without an end: no error")
	}
}

// scriptPaths returns the paths of the script's files.
func scriptPaths(t *testing.T) (paths []string) {
	t.Helper()
	names, err := scriptFiles("../../stores/redis/script.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		paths = append(paths, "../../stores/redis/script/"+name)
	}
	return paths
}

// Every break of the real script is another one: two would share an entry of
// survivors.txt.
func TestBreaksOfTheScriptAreApart(t *testing.T) {
	seen := map[key]string{}
	frames := map[string]bool{"arguments.lua": true, "machinery_end.lua": true} // which only begin and end a function
	for _, f := range scriptPaths(t) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all, err := mutants(filepath.Base(f), string(text))
		if err != nil || len(all) == 0 && !frames[filepath.Base(f)] {
			t.Fatalf("%s: %d, %v", f, len(all), err)
		}
		for _, m := range all {
			if was, found := seen[m.key()]; found {
				t.Errorf("the breaks of lines %s and %d of %s are written alike: %s", was, m.line, m.file, m.source)
			}
			seen[m.key()] = fmt.Sprint(m.line)
		}
	}
}

func TestTheSurvivorsFileIsChecked(t *testing.T) {
	good := "# head\n\nf.lua <→<=\n\tif a «<» b then\n\t\tthe same\n\t\tin the end\ng.lua 1→2\n\tn = «1»\n\tnever read\n"
	listed, err := parseSurvivors(good)
	if err != nil || len(listed) != 2 || listed[key{"f.lua", "<→<=", "if a «<» b then"}] != "the same in the end" {
		t.Errorf("%v, %v", listed, err)
	}
	for _, bad := range []string{"f.lua\n", "f.lua <→<=\n", "f.lua <→<=\n\tno mark\n", "f.lua <→<=\n\ta «<» b\n", "f.lua <→<=\n\ta «<» b\nf.lua 1→2\n\tn = «1»\n\tx\n"} {
		if _, err := parseSurvivors(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestTheReportCountsWhatIsListedApart(t *testing.T) {
	all, _ := mutants("f.lua", "a = 1 + 2 < 3")
	var out strings.Builder
	verdicts := []verdict{killed, killed, killed, lived, killed}
	listed := map[key]string{all[3].key(): "why"}
	if err := report(&out, all, verdicts, listed, true); err != nil || !strings.Contains(out.String(), "4 noticed, 0 not, 0 timed out, 1 that nothing can observe: 100.0 %") {
		t.Errorf("%v: %s", err, out.String())
	}
	if err := report(&out, all, verdicts, nil, true); err == nil {
		t.Error("80 % are enough")
	}
	listed[key{"f.lua", "a→b", "«a»"}] = "gone"
	if err := report(&out, all, verdicts, listed, true); err == nil || !strings.Contains(out.String(), "is not in the file") {
		t.Errorf("an entry of a line that is gone: %v", err)
	}
}

// Every entry of survivors.txt is a break of the script as it is.
func TestTheListedSurvivorsAreBreaks(t *testing.T) {
	text, err := os.ReadFile("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed, err := parseSurvivors(string(text))
	if err != nil || len(listed) == 0 {
		t.Fatal(len(listed), err)
	}
	for _, f := range scriptPaths(t) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all, err := mutants(filepath.Base(f), string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			delete(listed, m.key())
		}
	}
	for k := range listed {
		t.Errorf("%s %s: %s: is not in the script", k.file, k.change, k.source)
	}
}
