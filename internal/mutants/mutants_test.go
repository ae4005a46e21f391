//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const code = `package p

const most = 1 << 20

type T[K any] struct{ n int }

func (t *T[K]) Add(n int) bool {
	if t.n+n > most && n <= most {
		return false
	}
	t.n += n
	return true
}
`

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// gremlins prints a file anew, so that the layout differs too.
func TestABreakIsFoundThoughTheLayoutDiffers(t *testing.T) {
	original, changed := t.TempDir(), t.TempDir()
	write(t, original, "a.go", "package p\n")
	write(t, changed, "a.go", "package p\n")
	write(t, original, "sub/b.go", code)
	write(t, changed, "sub/b.go", strings.ReplaceAll(strings.Replace(code, "n <= most", "n < most", 1), "\t", "    "))
	at, err := findBreak(original, changed)
	if want := (broken{position{"sub/b.go", 8, 23}, "<"}); err != nil || at != want {
		t.Errorf("found %v, %v, want %v", at, err, want)
	}
	if _, err := findBreak(original, original); err == nil {
		t.Error("found a break in equal directories")
	}
}

func TestAMutantIsNamedWithoutItsPosition(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.go", code)
	s, err := readSource(filepath.Join(dir, "b.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		line, column     int
		function, marked string
	}{
		{3, 16, "-", "const most = 1 «<<» 20"},
		{8, 8, "T.Add", "if t.n«+»n > most && n <= most {"},
		{8, 23, "T.Add", "if t.n+n > most && n «<=» most {"},
		{11, 6, "T.Add", "t.n «+=» n"},
	} {
		if f, m := s.function(row.line), s.marked(row.line, row.column); f != row.function || m != row.marked {
			t.Errorf("%d:%d: %s %q, want %s %q", row.line, row.column, f, m, row.function, row.marked)
		}
	}
}

func TestSurvivorsAreRead(t *testing.T) {
	const entry = "core meter.far CONDITIONALS_BOUNDARY\n\treturn a «>=» b\n"
	s, err := parseSurvivors("# a comment\n\n" + entry + "\tnever\n\tequal\n")
	if k := (key{"core", "meter.far", "CONDITIONALS_BOUNDARY", "return a «>=» b"}); err != nil || len(s) != 1 || s[k] != "never equal" {
		t.Errorf("%v, %v", s, err)
	}
	for name, text := range map[string]string{
		"no reason":    entry,
		"no mark":      "core f M\n\ta < b\n\treason\n",
		"two fields":   "core f\n",
		"listed twice": entry + "\tr\n" + entry + "\tr\n",
	} {
		if _, err := parseSurvivors(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTheListOfSurvivorsIsWellFormed(t *testing.T) {
	if _, err := readSurvivors("survivors.txt"); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotKilledIsNotNoticed(t *testing.T) {
	k := key{area: "core", function: "f"}
	other := key{area: "core", function: "gone"}
	n := count(area{dir: "core", floor: 50}, []mutant{
		{Status: statusKilled}, {Status: statusLived}, {Status: statusTimedOut}, {Status: statusNotCovered}, {Status: statusNotViable},
		{Status: statusTimedOut, key: k},
	}, survivors{k: "reason", other: "reason"})
	if n.noticed() != 25 || n.listed != 1 || len(n.left) != 3 || len(n.stale) != 1 || n.stale[0] != other {
		t.Errorf("%+v: %v noticed", n, n.noticed())
	}
	if text, err := summary([]tally{n}); err == nil || !strings.Contains(text, "25.0 %") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestARunOverSomeMutantsLeavesTheOthersAsTheyWere(t *testing.T) {
	at := func(line int) position { return position{"a.go", line, 1} }
	r := results{Mutants: []mutant{{position: at(1), Status: statusKilled}, {position: at(2), Status: statusLived}}}
	r.merge([]mutant{{position: at(1), Status: statusNotCovered}, {position: at(2), Status: statusKilled}, {position: at(3), Status: statusLived}})
	var got []string
	for _, m := range r.Mutants {
		got = append(got, m.Status)
	}
	if strings.Join(got, " ") != "KILLED KILLED LIVED" {
		t.Error(got)
	}
}

// Tests that take most of the time are run last, and each test is in one part.
func TestPartsOfARun(t *testing.T) {
	out := "--- PASS: TestLong (9.00s)\n    --- PASS: TestLong/row (5.00s)\n--- PASS: TestShort (0.10s)\n--- PASS: TestMiddle (2.00s)\n--- PASS: ExampleP (0.20s)\n"
	parts := partsOf("^$", out)
	want := []string{"-test.skip=^$|^(TestMiddle|TestLong)$", "-test.run=^(TestMiddle)$", "-test.run=^(TestLong)$"}
	if len(parts) != len(want) {
		t.Fatalf("parts %v, want %v", parts, want)
	}
	for i, p := range parts {
		if p.Flag != want[i] {
			t.Errorf("part %d is %q, want %q", i, p.Flag, want[i])
		}
	}
	if parts[2].Limit <= parts[1].Limit || parts[1].Limit <= parts[0].Limit || parts[2].Limit < 9*4*time.Second {
		t.Errorf("limits of %v", parts)
	}
	if parts := partsOf("^TestX$", "--- PASS: TestOne (0.10s)\n"); len(parts) != 1 || parts[0].Flag != "-test.skip=^TestX$" {
		t.Errorf("a short run is divided: %v", parts)
	}
}
