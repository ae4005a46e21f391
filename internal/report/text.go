package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/floodgate-go/floodgate/internal/replay"
)

// Escape makes text harmless for a terminal: what cannot be printed is escaped as
// in a Go string.
func Escape(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Plain is Escape for text beside other text: it cuts what is long.
func Plain(s string) string {
	s = Escape(s)
	const most = 120
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-3]) + "..."
	}
	return s
}

// Key writes a key so that [ParseKey] reads it again: as it is, or, if a terminal
// or a shell would not leave it as it is, quoted as a Go string is. It is never
// cut.
func Key(s string) string {
	plain := s != "" && s[0] != '"' && strings.IndexFunc(s, func(c rune) bool { return c <= ' ' || c == '\\' || c >= 0x7f }) < 0
	if plain {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// ParseKey reads a key as [Key] writes it: in double quotes, or as it is.
func ParseKey(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	key, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("%s: want a key, or one in double quotes with escapes such as \\n, \\\\ and \\xff", Plain(s))
	}
	return key, nil
}

// Share is n of all in per cent.
func Share(n, all int64) string {
	if all == 0 {
		return "0.00 %"
	}
	return strconv.FormatFloat(100*float64(n)/float64(all), 'f', 2, 64) + " %"
}

// Text writes a report for a terminal.
func Text(w io.Writer, r *replay.Report) error {
	var b strings.Builder
	logs := make([]string, len(r.Logs))
	for i, name := range r.Logs {
		logs[i] = Plain(name)
	}
	fmt.Fprintf(&b, "%s: %s, %s", strings.Join(logs, ", "), plural(r.Lines, "line"), plural(r.Requests, "request"))
	if r.Requests > 0 {
		fmt.Fprintf(&b, " from %s to %s", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	}
	b.WriteString("\n")
	for _, note := range Notes(r) {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	for _, s := range r.Samples {
		fmt.Fprintf(&b, "  %s:%d: %s: %s\n", Plain(s.Log), s.Line, s.Problem, Plain(s.Text))
	}
	for i := range r.Files {
		textFile(&b, r, &r.Files[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func textFile(b *strings.Builder, r *replay.Report, f *replay.FileReport) {
	fmt.Fprintf(b, "\n%s: %d admitted, %d refused (%s)", Plain(f.File), f.Admitted, f.Refused, Share(f.Refused, r.Requests))
	if f.Bad > 0 {
		fmt.Fprintf(b, ", %d of them as bad requests", f.Bad)
	}
	if f.Rehearsed > 0 {
		fmt.Fprintf(b, "; shadow policies would have refused %d (%s)", f.Rehearsed, Share(f.Rehearsed, r.Requests))
	}
	b.WriteString("\n")
	table(b, "policy\trefused\tshare", len(f.Policies), func(i int) string {
		p := f.Policies[i]
		if p.Shadow {
			return fmt.Sprintf("%s (shadow)\t%d\t%s", p.Policy, p.Rehearsed, Share(p.Rehearsed, r.Requests))
		}
		return fmt.Sprintf("%s\t%d\t%s", p.Policy, p.Refused, Share(p.Refused, r.Requests))
	})
	table(b, "key\tpolicy\trule\trequests\trefused", len(f.Keys), func(i int) string {
		k := f.Keys[i]
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%d", name(k.Key), k.Policy, k.Rule, k.Requests, k.Refused)
	})
	table(b, "route\trequests\trefused\tshare", len(f.Routes), func(i int) string {
		x := f.Routes[i]
		return fmt.Sprintf("%s\t%d\t%d\t%s", Plain(x.Route), x.Requests, x.Refused, Share(x.Refused, x.Requests))
	})
	worst := worstPoints(f.Series, 5)
	table(b, "time\tadmitted\trefused", len(worst), func(i int) string {
		p := f.Series.Points[worst[i]]
		return fmt.Sprintf("%s\t%d\t%d", at(f.Series, worst[i]).Format("2006-01-02 15:04"), p.Admitted, p.Refused)
	})
	c := f.Clients
	fmt.Fprintf(b, "\n  clients: %d, %d of them refused at least once; of these %d never sent more than %d requests in a minute (refused %d times)\n",
		c.Clients, c.Refused, c.Honest, c.HonestPerMinute, c.HonestRefused)
	table(b, "honest client\trequests\trefused\tbusiest minute", len(c.Examples), func(i int) string {
		x := c.Examples[i]
		return fmt.Sprintf("%s\t%d\t%d\t%d", name(x.Client), x.Requests, x.Refused, x.Busiest)
	})
	for _, s := range f.Sweeps {
		table(b, s.Policy+" by itself with quota\trefused\tshare", len(s.Points), func(i int) string {
			p := s.Points[i]
			return fmt.Sprintf("× %g (%s)\t%d\t%s", p.Factor, numbers(p.Quotas), p.Refused, Share(p.Refused, s.Requests))
		})
	}
}

// name is what stands for a key.
func name(key string) string {
	if key == "" {
		return "(none)"
	}
	return Key(key)
}

func numbers(all []int64) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(texts, ", ")
}

func table(b *strings.Builder, head string, n int, row func(i int) string) {
	if n == 0 {
		return
	}
	lines := "\n  " + head + "\n"
	for i := range n {
		lines += "  " + row(i) + "\n"
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(w, lines) // to memory, as is what Flush writes
	_ = w.Flush()
}

// Notes are what has to be known to read the report, in words.
func Notes(r *replay.Report) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if r.Malformed > 0 {
		add("%s could not be read and left out", plural(r.Malformed, "line"))
	}
	if r.Outliers > 0 {
		add("%s left out: the time is far from those of the lines around", plural(r.Outliers, "line"))
	}
	if r.OutOfOrder > 0 {
		add("%s older than one before, by %v at most: decided at the time of the newest", plural(r.OutOfOrder, "request"), r.LongestBack)
	}
	if r.WholeSeconds {
		add("the log has whole seconds: requests of one second are decided at one moment")
	}
	for _, what := range r.Missing {
		add("the policies ask for what the log does not have: %s; requests are decided as if they had none", Plain(what))
	}
	for i := range r.Files {
		if f := &r.Files[i]; f.KeysMissed > 0 || f.Clients.Missed > 0 {
			add("%s: more than %d keys: rare ones are forgotten, and counts by key may be too small by %d", Plain(f.File), f.KeysHeld, max(f.KeysMissed, f.Clients.Missed))
		}
	}
	return notes
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}

func at(s replay.Series, i int) time.Time { return s.Start.Add(time.Duration(i) * s.Width) }

// worstPoints returns the points with the most refused, in order of time.
func worstPoints(s replay.Series, n int) []int {
	var worst []int
	for i, p := range s.Points {
		if p.Refused == 0 {
			continue
		}
		worst = append(worst, i)
		if len(worst) > n {
			least := 0
			for j := range worst {
				if s.Points[worst[j]].Refused < s.Points[worst[least]].Refused {
					least = j
				}
			}
			worst = append(worst[:least], worst[least+1:]...)
		}
	}
	return worst
}

// Lines makes text of several lines harmless for a terminal.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		quoted := strconv.Quote(line)
		lines[i] = strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), `\\`, `\`)
	}
	return strings.Join(lines, "\n")
}
