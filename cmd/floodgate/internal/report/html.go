package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
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
	"over": overTime, "sweep": sweepBars,
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
)

// plot has the data of a plot in the page.
type plot struct {
	Bars  []bar
	Scale string // the width of a bar and the height of a request
	YAxis []tick
	XAxis []tick
}

// bar shows what was denied on top of what was allowed.
type bar struct {
	replay.Point
	Title string
	Own   bool // it has the quotas of the file
}

// tick is a mark on an axis.
type tick struct {
	At   float64
	Text string
}

// newPlot returns a plot of bars without an XAxis, and the width of a bar.
func newPlot(bars []bar) (p plot, width float64) {
	var most int64
	for _, b := range bars {
		most = max(most, b.Allowed+b.Denied)
	}
	top := evenTop(most)
	width = plotWidth / float64(len(bars))
	p = plot{Bars: bars, Scale: fmt.Sprintf("%g %g", width, -plotHeight/float64(top))}
	p.YAxis = []tick{{plotHeight, "0"}, {plotHeight / 2, count(top / 2)}, {0, count(top)}}
	return p, width
}

// evenTop returns the first of 2, 4, 6, 8, 10, 20, 40 and so on that is not below n.
func evenTop(n int64) int64 {
	for power := int64(1); ; power *= 10 {
		for step := int64(2); step <= 10; step += 2 {
			if step*power >= n {
				return step * power
			}
		}
	}
}

// overTime draws allowed and denied over time.
func overTime(s replay.Series) plot {
	var bars []bar
	for i, p := range s.Points {
		title := fmt.Sprintf("%s, %v: %s allowed, %s denied", at(s, i).Format("2006-01-02 15:04"), s.Width, count(p.Allowed), count(p.Denied))
		if p.DryRunDenied > 0 {
			title += ", " + count(p.DryRunDenied) + " would have been denied by the dry run"
		}
		bars = append(bars, bar{Point: p, Title: title})
	}
	p, _ := newPlot(bars)
	for i := range 5 {
		from := s.Start.Add(s.Width * time.Duration(i*len(bars)) / 4)
		p.XAxis = append(p.XAxis, tick{plotWidth * float64(i) / 4, from.Format("01-02 15:04")})
	}
	return p
}

// sweepBars draws what is denied with other quotas.
func sweepBars(s replay.Sweep) plot {
	var bars []bar
	for _, p := range s.Points {
		title := fmt.Sprintf("%s (× %g): %s denied", numbers(p.Quotas), p.Factor, Share(p.Denied, s.Requests))
		bars = append(bars, bar{replay.Point{Denied: p.Denied}, title, p.Factor == 1})
	}
	p, width := newPlot(bars)
	for i, point := range s.Points {
		p.XAxis = append(p.XAxis, tick{width * (float64(i) + 0.5), numbers(point.Quotas[:min(1, len(point.Quotas))])})
	}
	return p
}
