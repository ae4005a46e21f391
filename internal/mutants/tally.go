//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// tally is what the tests of an area noticed.
type tally struct {
	area
	killed, lived, timedOut, notCovered, notViable int
	listed                                         int      // survivors that are listed; in none of the counts above
	left                                           []mutant // survivors that are not listed
	stale                                          []key    // entries of the list that are of no survivor
}

func count(a area, ms []mutant, listed survivors) tally {
	t := tally{area: a}
	found := map[key]bool{}
	for _, m := range ms {
		if m.Status != statusKilled && listed[m.key] != "" {
			found[m.key] = true
			t.listed++
			continue
		}
		switch m.Status {
		case statusKilled:
			t.killed++
			continue
		case statusNotViable:
			t.notViable++
			continue
		case statusTimedOut:
			t.timedOut++
		case statusNotCovered:
			t.notCovered++
		default:
			t.lived++
		}
		t.left = append(t.left, m)
	}
	for k := range listed {
		if k.area == a.dir && !found[k] {
			t.stale = append(t.stale, k)
		}
	}
	slices.SortFunc(t.stale, func(a, b key) int { return strings.Compare(a.function+a.source, b.function+b.source) })
	return t
}

// noticed returns the share of breaks that were noticed, in percent. A test
// that does not end notices nothing, and neither does one that is missing.
func (t tally) noticed() float64 {
	return percent(t.killed, t.killed+t.lived+t.timedOut+t.notCovered)
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}

// survivors returns the survivors in the form of survivors.txt.
func (t tally) survivors() string {
	var text strings.Builder
	for _, m := range t.left {
		fmt.Fprintf(&text, "%s %s %s\n\t%s\n\t(%s at %s/%s:%d:%d)\n", m.key.area, m.key.function, m.key.mutator, m.key.source, m.Status, t.dir, m.File, m.Line, m.Column)
	}
	for _, k := range t.stale {
		fmt.Fprintf(&text, "survivors.txt lists what is no survivor: %s %s %s\n\t%s\n", k.area, k.function, k.mutator, k.source)
	}
	return text.String()
}

// summary returns a table. The error names the areas that are below their
// floor.
func summary(ts []tally) (string, error) {
	var rows, text strings.Builder
	fmt.Fprintln(&rows, "area\tkilled\tlived\ttimed out\tnot covered\tnot viable\tlisted\tnoticed\tfloor\t")
	var below []string
	for _, t := range ts {
		fmt.Fprintf(&rows, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t%.0f %%\t\n", t.dir, t.killed, t.lived, t.timedOut, t.notCovered, t.notViable, t.listed, t.noticed(), t.floor)
		if t.noticed() < t.floor {
			below = append(below, t.dir)
		}
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	if _, err := table.Write([]byte(rows.String())); err != nil {
		return "", err
	}
	if err := table.Flush(); err != nil {
		return "", err
	}
	if below != nil {
		return text.String(), fmt.Errorf("below the floor: %v", below)
	}
	return text.String(), nil
}
