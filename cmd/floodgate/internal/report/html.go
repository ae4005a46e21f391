package report

import (
	_ "embed"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"plain": Plain, "name": name, "share": Share, "numbers": numbers, "count": count, "notes": Notes,
	"time": func(t time.Time) string { return t.Format("2006-01-02 15:04:05 -07:00") },
	"join": func(all []string) string { return strings.Join(all, "; ") },
	"over": overTime, "sweep": sweepCurve,
	"pct": func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) },
}).Parse(pageText))

// HTML writes a report as one page that contains its styles and plots. The page
// loads nothing and runs nothing.
func HTML(w io.Writer, r *replay.Report) error { return page.Execute(w, r) }

// count writes a number with thin spaces between thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// The plots' size, inside of the axes, in units of the drawing.
const (
	plotWidth  = 860.0
	plotHeight = 200.0
	maxBars    = 215 // 4 units each
)

// Plot has the data of a plot in the page.
type Plot struct {
	Bars  []PlotBar
	Line  string // the points of a polyline, "" for none
	Dots  []Dot
	YAxis []Tick
	XAxis []Tick
}

// PlotBar is a bar in parts, one on the other: allowed below, denied above.
type PlotBar struct {
	X, Width           float64
	AllowedY, AllowedH float64
	DeniedY, DeniedH   float64
	DryRunY, DryRunH   float64
	Title              string
}

// Dot is a point of a curve.
type Dot struct {
	X, Y  float64
	Own   bool // the quota that the file has
	Title string
}

// Tick is a mark on an axis.
type Tick struct {
	At   float64
	Text string
}

// overTime draws allowed and denied over time.
func overTime(s replay.Series) Plot {
	each := (len(s.Points) + maxBars - 1) / maxBars // points of a bar
	if each == 0 {
		return Plot{}
	}
	var bars []replay.Point
	for i, p := range s.Points {
		if i%each == 0 {
			bars = append(bars, replay.Point{})
		}
		b := &bars[len(bars)-1]
		b.Allowed += p.Allowed
		b.Denied += p.Denied
		b.DryRunDenied += p.DryRunDenied
	}
	var most int64
	for _, b := range bars {
		most = max(most, b.Allowed+b.Denied)
	}
	top := niceTop(most)
	p := Plot{YAxis: yTicks(top, func(f float64) string { return count(int64(f)) })}
	width := plotWidth / float64(len(bars))
	for i, b := range bars {
		from := at(s, i*each)
		title := from.Format("2006-01-02 15:04") + ", " + (time.Duration(each) * s.Width).String() + ": " + count(b.Allowed) + " allowed, " + count(b.Denied) + " denied"
		if b.DryRunDenied > 0 {
			title += ", " + count(b.DryRunDenied) + " would have been denied by the dry run"
		}
		bar := stacked(float64(i)*width, width, b.Allowed, b.Denied, top, title)
		bar.DryRunH = plotHeight * float64(b.DryRunDenied) / top
		bar.DryRunY = plotHeight - bar.DryRunH
		p.Bars = append(p.Bars, bar)
	}
	for i := range 5 {
		at := float64(i) / 4
		p.XAxis = append(p.XAxis, Tick{at * plotWidth, s.Start.Add(time.Duration(at * float64(len(s.Points)) * float64(s.Width))).Format("01-02 15:04")})
	}
	return p
}

func stacked(x, width float64, allowed, denied int64, top float64, title string) PlotBar {
	b := PlotBar{X: x, Width: width - 0.5, Title: title} // there are at most maxBars
	b.AllowedH = plotHeight * float64(allowed) / top
	b.AllowedY = plotHeight - b.AllowedH
	b.DeniedH = plotHeight * float64(denied) / top
	b.DeniedY = b.AllowedY - b.DeniedH
	return b
}

// sweepCurve draws the denied share against the quota; factors are apart by
// their logarithm.
func sweepCurve(s replay.Sweep) Plot {
	if len(s.Points) < 2 || s.Requests == 0 {
		return Plot{}
	}
	top := 0.0
	for _, p := range s.Points {
		top = math.Max(top, 100*float64(p.Denied)/float64(s.Requests))
	}
	top = math.Min(100, math.Max(1, math.Ceil(top/5)*5))
	plot := Plot{YAxis: yTicks(top, func(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) + " %" })}
	from, to := math.Log(s.Points[0].Factor), math.Log(s.Points[len(s.Points)-1].Factor)
	var line []string
	for _, p := range s.Points {
		share := 100 * float64(p.Denied) / float64(s.Requests)
		d := Dot{
			X: plotWidth * (math.Log(p.Factor) - from) / (to - from), Y: plotHeight * (1 - share/top), Own: p.Factor == 1,
			Title: numbers(p.Quotas) + " (× " + strconv.FormatFloat(p.Factor, 'g', -1, 64) + "): " + Share(p.Denied, s.Requests) + " denied",
		}
		line = append(line, strconv.FormatFloat(d.X, 'f', 1, 64)+","+strconv.FormatFloat(d.Y, 'f', 1, 64))
		plot.Dots = append(plot.Dots, d)
		plot.XAxis = append(plot.XAxis, Tick{d.X, numbers(p.Quotas[:min(1, len(p.Quotas))])})
	}
	plot.Line = strings.Join(line, " ")
	return plot
}

// niceTop returns the first of 1, 2, 5, 10, 20, 50 and so on that is not below n.
func niceTop(n int64) float64 {
	for power := 1.0; ; power *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if step*power >= float64(n) {
				return step * power
			}
		}
	}
}

// yTicks returns the marks of an axis that ends at top, all at round numbers.
func yTicks(top float64, text func(float64) string) []Tick {
	first := top // its first digit, if the others are zeros
	for first > 5 {
		first /= 10
	}
	n := 4
	switch {
	case top <= 2:
		n = int(top)
	case first == 5:
		n = 5
	}
	var ticks []Tick
	for i := range n + 1 {
		share := float64(i) / float64(n)
		ticks = append(ticks, Tick{plotHeight * (1 - share), text(top * share)})
	}
	return ticks
}
