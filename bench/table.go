package main

import (
	"cmp"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/floodgate-go/floodgate/bench/peers"
)

// Table is what one scenario has measured of all peers.
type Table struct {
	Title, Text, Unit string
	Lower             bool   // less is better
	Ours              string // the peer that others are compared with
	Decimals          int
	Exact             float64 // the only right value; 0: none
	Columns           []string
	Rows              []*Row
}

// Row is what has been measured of one peer.
type Row struct {
	Peer, Version string
	Cells         map[string]*Sample
}

// cell returns the sample of a peer in a column, for values to be added.
func (t *Table) cell(p peers.Peer, column string) *Sample {
	if !slices.Contains(t.Columns, column) {
		t.Columns = append(t.Columns, column)
	}
	i := slices.IndexFunc(t.Rows, func(r *Row) bool { return r.Peer == p.Name })
	if i < 0 {
		i = len(t.Rows)
		t.Rows = append(t.Rows, &Row{Peer: p.Name, Version: version(p.Module), Cells: map[string]*Sample{}})
	}
	cells := t.Rows[i].Cells
	if cells[column] == nil {
		cells[column] = new(Sample)
	}
	return cells[column]
}

// order puts the columns in order.
func (t *Table) order(columns ...string) { t.Columns = columns }

// merge adds the values of some tables to those of the same titles.
func merge(all, some []Table) []Table {
	for _, t := range some {
		i := slices.IndexFunc(all, func(o Table) bool { return o.Title == t.Title })
		if i < 0 {
			all = append(all, t)
			continue
		}
		to := &all[i]
		for _, column := range t.Columns {
			if !slices.Contains(to.Columns, column) {
				to.Columns = append(to.Columns, column)
			}
		}
		for _, row := range t.Rows {
			into := to.row(row.Peer)
			if into == nil {
				to.Rows = append(to.Rows, row)
				continue
			}
			for column, cell := range row.Cells {
				if into.Cells[column] == nil {
					into.Cells[column] = cell
					continue
				}
				into.Cells[column].Values = append(into.Cells[column].Values, cell.Values...)
				into.Cells[column].Note = cmp.Or(into.Cells[column].Note, cell.Note)
			}
		}
	}
	return all
}

// version returns the version of a module that this program was built with.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			if m.Replace != nil {
				return "this tree"
			}
			return m.Version
		}
	}
	return "unknown"
}

// row returns the row of a peer, nil where there is none.
func (t *Table) row(peer string) *Row {
	for _, r := range t.Rows {
		if r.Peer == peer {
			return r
		}
	}
	return nil
}

// leader returns who has the best median of a column, of those that limit.
func (t *Table) leader(column string) (peer string, value float64) {
	for _, r := range t.Rows {
		s := r.Cells[column]
		if s == nil || len(s.Values) == 0 || r.Peer == bareINCR.Name || r.Peer == peers.Plain || r.Peer == peers.Six || r.Peer == peers.Synced || peers.IsExtra(r.Peer) {
			continue
		}
		if m := s.median(); peer == "" || t.Lower && m < value || !t.Lower && m > value {
			peer, value = r.Peer, m
		}
	}
	return peer, value
}

func (t *Table) number(f float64) string {
	if t.Decimals > 0 {
		return strconv.FormatFloat(f, 'f', t.Decimals, 64)
	}
	if math.Abs(f) < 100 && f != math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return thousands(f)
}

// thousands writes a number with commas.
func thousands(f float64) string {
	s := strconv.FormatFloat(math.Abs(f), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if f <= -0.5 {
		s = "-" + s
	}
	return s
}

// text is a cell of the report: the median, the spread, and how much that is of
// ours.
func (t *Table) text(r *Row, column string) string {
	s := r.Cells[column]
	if s == nil || len(s.Values) == 0 {
		return "–"
	}
	var b strings.Builder
	median := s.median()
	b.WriteString("**" + t.number(median) + "**")
	if least, most := s.spread(); t.number(least) != t.number(most) {
		b.WriteString(" (" + t.number(least) + "–" + t.number(most) + ")")
	}
	if own := t.row(t.Ours); own != nil && own != r && t.Exact == 0 {
		if ours := own.Cells[column]; ours != nil && len(ours.Values) > 0 && ours.median() > 0 {
			b.WriteString(" " + strconv.FormatFloat(median/ours.median(), 'f', 2, 64) + "×")
		}
	}
	if s.Note != "" {
		b.WriteString(" (" + s.Note + ")")
	}
	return b.String()
}
