package quotas

import (
	"maps"
	"slices"
	"strconv"
	"testing"
)

// A table that is written anew, with its keys in quotes, is the same table. What is
// no table has problems, each in a line of the text.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"ann: 1000/m, 20000/d\nbob: unlimited\n", "# x\n\n2001:db8::/64: 7/d # y", "\"a\\x00b\" : '5'", "'it''s': 5/m", "a: 5\na: 6", "a\r\n b: 5", "\ufeffa: unlimited/d", ": 5", "a: 0/60s,1/s",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		table, problems := Parse(text)
		lines := 2
		for _, c := range text {
			if c == '\n' {
				lines++
			}
		}
		for _, p := range problems {
			if p.Text == "" || p.Line < 1 || p.Line > lines || p.Column < 1 || p.Column > len(text)+1 {
				t.Errorf("the problem %+v", p)
			}
		}
		if (table == nil) == (problems == nil) {
			t.Fatalf("%v and %v", table, problems)
		}
		if table == nil {
			return
		}
		var again []byte
		texts := maps.Collect(Read(text).All())
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			again = append(strconv.AppendQuote(again, key), ": "+texts[key]+"\n"...)
		}
		other, problems := Parse(again)
		if problems != nil || other.Len() != table.Len() {
			t.Fatalf("written anew: %q: %v", again, problems)
		}
		for key := range texts {
			a, b := table.Find([]byte(key)), other.Find([]byte(key))
			if b == nil || a.every != b.every || !slices.Equal(a.parts, b.parts) {
				t.Errorf("%q: %+v, %+v", key, a, b)
			}
		}
	})
}
