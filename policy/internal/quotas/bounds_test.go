package quotas

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A search begins at the first slot of one of the lines, and ends at an empty slot:
// a third of the slots and a line more are empty.
func TestTheSlotsOfAnIndex(t *testing.T) {
	three := map[string]entry{"a": {}, "b": {}, "c": {}}
	x := index{seed: newIndex(nil, 1).seed, rowBits: 8, slots: make([]uint64, 16), lines: make([]uint32, 16)}
	starts, checks := map[int]bool{}, map[uint64]bool{}
	for k := range 100 {
		i, check := x.home(fmt.Append(nil, k))
		starts[i], checks[check] = true, true
	}
	if len(starts) != 2 || !starts[0] || !starts[8] || len(checks) != 100 {
		t.Fatalf("100 keys begin at %v and have %d checks", starts, len(checks))
	}
	if x.next(0) != 1 || x.next(14) != 15 || x.next(15) != 0 {
		t.Fatalf("%d, %d and %d follow 0, 14 and 15", x.next(0), x.next(14), x.next(15))
	}
	if !x.fill(three) {
		t.Fatal("three keys with different checks are taken for the same")
	}
	for key := range three {
		if x.find([]byte(key)) < 0 {
			t.Fatalf("%q is not found", key)
		}
	}
	// The smallest first: an index that is too small is filled without end.
	for _, size := range [][2]int{{0, 16}, {5, 16}, {6, 24}, {16, 40}, {100, 160}} {
		entries := map[string]entry{}
		for k := range size[0] {
			entries[fmt.Sprint(k)] = entry{}
		}
		if x := newIndex(entries, 1); len(x.slots) != size[1] {
			t.Fatalf("%d keys: %d slots, want %d", size[0], len(x.slots), size[1])
		}
	}
}

// What is as large as it may be is taken.
func TestTheLargestTable(t *testing.T) {
	for what, text := range map[string]string{
		"quota":          fmt.Sprint("ann: ", core.MaxQuota),
		"text of quotas": "ann: " + strings.Repeat("0", maxText-1) + "5",
		"file":           "ann: 5 #" + strings.Repeat("x", MaxBytes-8),
	} {
		if table, problems := Parse([]byte(text)); problems != nil || table.Len() != 1 {
			t.Errorf("the largest %s: %v", what, problems)
		}
	}
	log := [][]core.Limit{{{Quota: 5, Window: time.Minute, Algorithm: core.SlidingLog}}}
	for quota, want := range map[int]int{core.MaxLogQuota: 0, core.MaxLogQuota + 1: 1} {
		table, _ := Parse(fmt.Append(nil, "ann: ", quota))
		if problems, _ := table.Check(log); len(problems) != want {
			t.Errorf("a log of %d hits: %v, want %d problems", quota, problems, want)
		}
	}
	var text bytes.Buffer
	for n := range maxProblems + 5 {
		fmt.Fprintf(&text, "key%d: %d/h\n", n, n+1)
	}
	table, _ := Parse(text.Bytes())
	if problems, _ := table.Check(twoLimits); len(problems) != maxProblems {
		t.Errorf("%d rows of a window that the rule does not have: %d problems", maxProblems+5, len(problems))
	}
}

// A key that is probably a mistake is found wherever the index has it.
func TestKeysThatAreNoPatternsInEachSlot(t *testing.T) {
	for range 64 {
		table, _ := Parse([]byte("default: 5/m\n*: 5/m"))
		if _, doubts := table.Check(twoLimits); len(doubts) != 2 {
			t.Fatalf("in the slots %d and %d: %v", table.find([]byte("default")), table.find([]byte("*")), doubts)
		}
	}
}

// A comment begins with the number sign, whatever follows it; a mistake has the
// column at which it is.
func TestThePlaceOfAMistakeInALine(t *testing.T) {
	for text, want := range map[string]string{
		"\x00: 5":                "1:1: has a character",
		"\"a\" :  many":          "1:8: ",
		"\"ä\":\tmany # comment": "1:6: ",
		"ann: 5 #":               "",
		"ann: 5\t#x":             "",
		"ann: 5#x":               "1:6: ",
		"ann: 5# ":               "1:6: ",
	} {
		_, problems := Parse([]byte(text))
		got := ""
		for _, p := range problems {
			got += fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Text)
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
