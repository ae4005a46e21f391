package quotas

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// MaxRows is the most rows of a table.
const MaxRows = 10_000_000

// maxProblems is the number of problems after which a table is not read further.
const maxProblems = 1000

// Table has the quotas of keys. The nil Table is empty.
type Table struct {
	index
	rows []stored // each text of a row is kept once: customers of a plan have the same
}

// entry is what is kept for a key.
type entry struct {
	row  uint32 // of rows
	line uint32 // 0: more than an uint32 holds
}

// stored is a row and the place where its text was first.
type stored struct {
	Row
	text         string
	line, column int
}

// Len returns the number of keys.
func (t *Table) Len() int {
	if t == nil {
		return 0
	}
	return t.keys
}

// Find returns the row of a key, nil if the table does not have the key.
func (t *Table) Find(key []byte) *Row {
	if t == nil {
		return nil
	}
	i := t.find(key)
	if i < 0 {
		return nil
	}
	return &t.rows[t.row(i)].Row
}

// Line returns the line of a key, 0 if it is not known.
func (t *Table) Line(key string) int {
	if t != nil {
		if i := t.find([]byte(key)); i >= 0 {
			return int(t.lines[i])
		}
	}
	return 0
}

// Check returns what is wrong with the table for a rule, and what is probably a
// mistake: see [Row.Check].
func (t *Table) Check(sets [][]core.Limit) (problems, doubts []Problem) {
	if t == nil {
		return nil, nil
	}
	for i := range t.rows {
		row := &t.rows[i]
		if text, hint := row.Check(sets); text != "" && len(problems) < maxProblems {
			if row.parts != nil {
				text = fmt.Sprintf("%q: %s", words.Shorten(row.text), text)
			}
			problems = append(problems, Problem{row.line, row.column, text, hint})
		}
		if row.deniesAll() {
			doubts = append(doubts, Problem{row.line, row.column, fmt.Sprintf("%q: denies all requests of the key", words.Shorten(row.text)), "write 1 or more; leave the line out for the limit's own quota"})
		}
	}
	if t.find([]byte("default")) >= 0 {
		doubts = append(doubts, Problem{t.Line("default"), 1, "default: is a key as any other", "a key that is not in the table has the quotas of limits in the policy file"})
	}
	if t.find([]byte("*")) >= 0 {
		doubts = append(doubts, Problem{t.Line("*"), 1, "*: is a key as any other, no pattern", "a key that is not in the table has the quotas of limits in the policy file"})
	}
	slices.SortStableFunc(doubts, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return problems, doubts
}

// Builder makes a Table. Its zero value is ready for use.
type Builder struct {
	entries  map[string]entry
	rows     []stored
	known    map[string]uint32 // texts of rows
	problems []Problem
}

// full reports whether nothing more is read.
func (b *Builder) full() bool { return len(b.problems) >= maxProblems }

func (b *Builder) bad(line, column int, text, hint string) {
	b.problems = append(b.problems, Problem{line, column, text, hint})
}

// Add adds a row. It returns false if nothing more can be added.
func (b *Builder) Add(key, text string, line, column int) bool {
	if b.entries == nil {
		b.entries, b.known = map[string]entry{}, map[string]uint32{}
	}
	if e, twice := b.entries[key]; twice {
		b.bad(line, 1, fmt.Sprintf("the key stands twice, in line %d too", e.line), "leave one out")
		return !b.full()
	}
	if len(b.entries) == MaxRows {
		b.bad(line, 1, fmt.Sprintf("more than %d rows", MaxRows), "")
		return false
	}
	i, known := b.known[text]
	if !known {
		row, problem, hint := ParseRow(text)
		if problem != "" {
			b.bad(line, column, problem, hint)
			return !b.full()
		}
		i = uint32(len(b.rows)) //nolint:gosec // at most MaxRows
		b.rows = append(b.rows, stored{row, text, line, column})
		b.known[text] = i
	}
	b.entries[key] = entry{i, uint32(min(int64(line), math.MaxUint32))} //nolint:gosec // bounded
	return true
}

// Table returns the table, or the problems of its rows.
func (b *Builder) Table() (*Table, []Problem) {
	if b.problems != nil {
		return nil, b.problems
	}
	return &Table{newIndex(b.entries, bits.Len(uint(len(b.rows)))), b.rows}, nil
}

// Problems returns the problems of the rows.
func (b *Builder) Problems() []Problem { return b.problems }

// All returns the keys and the texts of their rows, in no order.
func (b *Builder) All() iter.Seq2[string, string] {
	return func(yield func(key, text string) bool) {
		for key, e := range b.entries {
			if !yield(key, b.rows[e.row].text) {
				return
			}
		}
	}
}
