package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// chartName is the name of the file with a column's chart.
func (t *Table) chartName(column string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Title+" "+column), "-"), "-") + ".svg"
}

// chart draws a column: ours in one colour, the others in another.
func (t *Table) chart(dir, column string) error {
	var bars []chart.Value
	most := 0.0
	for _, r := range t.Rows {
		s := r.Cells[column]
		if s == nil || len(s.Values) == 0 {
			continue
		}
		colour := drawing.ColorFromHex("8fa3b8")
		if strings.HasPrefix(r.Peer, t.Ours) {
			colour = drawing.ColorFromHex("1f77b4")
		}
		value := math.Max(0, s.median())
		most = math.Max(most, value)
		bars = append(bars, chart.Value{Label: r.Peer + "\n" + t.number(value), Value: value, Style: chart.Style{FillColor: colour, StrokeColor: colour}})
	}
	if len(bars) < 2 || most == 0 {
		return nil
	}
	graph := chart.BarChart{
		Title: t.Title + ", " + column, TitleStyle: chart.Style{FontSize: 11},
		Width: 130 + 105*len(bars), Height: 300, BarWidth: 55, BarSpacing: 50,
		Background: chart.Style{Padding: chart.Box{Top: 45, Left: 10, Right: 10, Bottom: 25}},
		XAxis:      chart.Style{FontSize: 8, TextWrap: chart.TextWrapWord},
		YAxis:      chart.YAxis{Range: &chart.ContinuousRange{Min: 0, Max: most * 1.05}, ValueFormatter: func(v any) string { return thousands(v.(float64)) }},
		Bars:       bars,
	}
	var b bytes.Buffer
	if err := graph.Render(chart.SVG, &b); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, t.chartName(column)), b.Bytes(), 0o644) //nolint:gosec // a report is for everybody
}
