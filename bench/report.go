package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Report is all that was measured.
type Report struct {
	Date    time.Time
	Machine string
	Full    bool
	Took    time.Duration
	Tables  []Table
}

// load reads what a report has, for some of its tables to be measured again.
func (r *Report) load(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "figures.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var old Report
	if err := json.Unmarshal(text, &old); err != nil {
		return err
	}
	if old.Machine == r.Machine && old.Full == r.Full {
		r.Tables, r.Took = old.Tables, old.Took
	}
	return nil
}

// put puts tables in the place of those with the same titles.
func (r *Report) put(tables []Table) {
	for _, t := range tables {
		if i := slices.IndexFunc(r.Tables, func(o Table) bool { return o.Title == t.Title }); i >= 0 {
			r.Tables[i] = t
		} else {
			r.Tables = append(r.Tables, t)
		}
	}
}

// charted are the columns that are drawn.
var charted = map[string][]string{
	"A decision in the process, one caller":                 {"1,000 keys", "1,000,000 keys"},
	"Live memory of a key, at a million keys":               {"bytes"},
	"The longest call while a million keys expire":          {"µs"},
	"The middleware of net/http above the bare handler":     {"allowed"},
	"The middleware of Gin above the bare handler":          {"allowed"},
	"The middleware of Echo above the bare handler":         {"allowed"},
	"The middleware of Fiber above the bare handler":        {"allowed"},
	"Decisions a second in Redis on the loopback interface": {"64 callers"},
	"Decisions a second in Redis 1 ms away":                 {"64 callers"},
	"Admitted of 2,000 at once, at a limit of 100":          {"in the process", "Redis, 4 instances"},
}

// write writes the report, its charts, and the figures for other programs.
func (r *Report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a report is for everybody
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	for _, name := range old {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	command := "make bench"
	if r.Full {
		command = "make bench-full"
	}
	fmt.Fprintf(&b, "# The bench\n\n%s, `%s` in %v, on %s.\n\n", r.Date.Format("2006-01-02"), command, r.Took.Round(time.Second), r.Machine)
	b.WriteString("A cell has the median, the smallest and the largest value in brackets, and how much the median is of ours. " +
		"[README.md](../README.md) says what is measured, and why another library leads if one does.\n")
	r.budgets(&b)
	r.leaders(&b)
	for i := range r.Tables {
		if err := r.table(&b, dir, &r.Tables[i]); err != nil {
			return err
		}
	}
	figures, err := json.MarshalIndent(r, "", " ")
	return errors.Join(err,
		os.WriteFile(filepath.Join(dir, "REPORT.md"), []byte(b.String()), 0o644),       //nolint:gosec // a report is for everybody
		os.WriteFile(filepath.Join(dir, "figures.json"), append(figures, '\n'), 0o644)) //nolint:gosec // as above
}

func (r *Report) table(b *strings.Builder, dir string, t *Table) error {
	fmt.Fprintf(b, "\n## %s\n\n", t.Title)
	if t.Text != "" {
		fmt.Fprintf(b, "%s\n\n", t.Text)
	}
	unit := ""
	if t.Unit != "" {
		unit = ", " + t.Unit
	}
	fmt.Fprintf(b, "| peer | version | %s |\n|---|---|%s\n", strings.Join(withUnit(t.Columns, unit), " | "), strings.Repeat("---:|", len(t.Columns)))
	for _, row := range t.Rows {
		cells := make([]string, len(t.Columns))
		for i, column := range t.Columns {
			cells[i] = t.text(row, column)
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", row.Peer, row.Version, strings.Join(cells, " | "))
	}
	for _, column := range charted[t.Title] {
		if err := t.chart(dir, column); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, t.chartName(column))); err == nil {
			fmt.Fprintf(b, "\n![%s, %s](%s)\n", t.Title, column, t.chartName(column))
		}
	}
	return nil
}

func withUnit(columns []string, unit string) []string {
	all := make([]string, len(columns))
	for i, c := range columns {
		if all[i] = c; c != strings.TrimPrefix(unit, ", ") {
			all[i] += unit
		}
	}
	return all
}

// budgets says which of our budgets were met.
func (r *Report) budgets(b *strings.Builder) {
	var lines []string
	for _, budget := range budgets {
		if text, _, measured := budget.verdict(r.Tables); measured {
			lines = append(lines, fmt.Sprintf("| %s | %s |\n", budget.what, text))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n## Budgets\n\n| what | |\n|---|---|\n%s", strings.Join(lines, ""))
	}
}

// leaders says who leads each column.
func (r *Report) leaders(b *strings.Builder) {
	var behind []string
	columns, first := 0, 0
	for i := range r.Tables {
		t := &r.Tables[i]
		own := t.row(t.Ours)
		if own == nil || t.Exact != 0 {
			continue
		}
		for _, column := range t.Columns {
			cell := own.Cells[column]
			if cell == nil || len(cell.Values) == 0 {
				continue
			}
			columns++
			peer, best := t.leader(column)
			if peer == t.Ours || math.Abs(best-cell.median()) < 1e-9 || t.number(best) == t.number(cell.median()) {
				first++
				continue
			}
			behind = append(behind, fmt.Sprintf("- %s, %s: %s with %s %s, ours %s\n", t.Title, column, peer, t.number(best), t.Unit, t.number(cell.median())))
		}
	}
	fmt.Fprintf(b, "\n## Who leads\n\nOurs is first, alone or with others, in %d of the %d columns that it takes part in.\n", first, columns)
	if len(behind) > 0 {
		fmt.Fprintf(b, "Somebody else leads:\n\n%s", strings.Join(behind, ""))
	}
}
