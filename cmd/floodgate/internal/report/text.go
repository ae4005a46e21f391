// Package report writes the results of a replay: as text for a terminal, as JSON, and as a
// self-contained page of HTML. The text of a log was written by strangers: none of it can have an
// effect in a terminal or a browser.
package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

// Escape makes text harmless for a terminal: characters that cannot be printed are escaped as in a
// Go string.
func Escape(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Plain is Escape for text beside other text: it cuts long text.
func Plain(s string) string {
	s = Escape(s)
	const most = 120
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-3]) + "..."
	}
	return s
}

// Key writes a key so that [ParseKey] reads it again. It quotes the key like a Go string if a
// terminal or a shell would change it. It never cuts the key.
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
	b := &strings.Builder{}
	logs := make([]string, len(r.Logs))
	for i, name := range r.Logs {
		logs[i] = Plain(name)
	}
	fmt.Fprintf(b, "%s: %s, %s", strings.Join(logs, ", "), Plural(r.Lines, "line", "lines"), Plural(r.Requests, "request", "requests"))
	if r.Requests > 0 {
		fmt.Fprintf(b, " from %s to %s", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	}
	b.WriteString("\n")
	for _, note := range Notes(r) {
		fmt.Fprintf(b, "note: %s\n", note)
	}
	for _, s := range r.Samples {
		fmt.Fprintf(b, "  %s:%d: %s: %s\n", Plain(s.Log), s.Line, s.Problem, Plain(s.Text))
	}
	fmt.Fprintf(b, "\n%s: %d allowed, %d denied (%s)", Plain(r.File), r.Allowed, r.Denied, Share(r.Denied, r.Requests))
	if r.Bad > 0 {
		fmt.Fprintf(b, ", %d of them as bad requests with status 400", r.Bad)
	}
	if r.DryRunDenied > 0 {
		fmt.Fprintf(b, "; the dry run would have denied %d (%s)", r.DryRunDenied, Share(r.DryRunDenied, r.Requests))
	}
	b.WriteString("\n")
	table(b, "policy\tdenied\tshare", r.Policies, func(p replay.PolicyReport) string {
		if p.DryRun {
			return fmt.Sprintf("%s (dry run)\t%d\t%s", p.Policy, p.DryRunDenied, Share(p.DryRunDenied, r.Requests))
		}
		return fmt.Sprintf("%s\t%d\t%s", p.Policy, p.Denied, Share(p.Denied, r.Requests))
	})
	table(b, "key\tpolicy\trule\trequests\tdenied", r.Keys, func(k replay.KeyReport) string {
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%d", name(k.Key), k.Policy, k.Rule, k.Requests, k.Denied)
	})
	table(b, "route\trequests\tdenied\tshare", r.Routes, func(x replay.RouteReport) string {
		return fmt.Sprintf("%s\t%d\t%d\t%s", Plain(x.Route), x.Requests, x.Denied, Share(x.Denied, x.Requests))
	})
	table(b, "time\tallowed\tdenied", worstPoints(r.Series), func(i int) string {
		p := r.Series.Points[i]
		return fmt.Sprintf("%s\t%d\t%d", at(r.Series, i).Format("2006-01-02 15:04"), p.Allowed, p.Denied)
	})
	c := r.Clients
	fmt.Fprintf(b, "\n  clients: %d, denied at least once: %d\n  honest clients (at most %s in each minute) that were denied: %d, with %s\n",
		c.Clients, c.Denied, Plural(c.HonestPerMinute, "request", "requests"), c.Honest, Plural(c.HonestDenied, "denied request", "denied requests"))
	table(b, "honest client\trequests\tdenied\tbusiest minute", c.Examples, func(x replay.ClientExample) string {
		return fmt.Sprintf("%s\t%d\t%d\t%d", name(x.Client), x.Requests, x.Denied, x.Busiest)
	})
	for _, s := range r.Sweeps {
		table(b, "policy "+s.Policy+" alone, with quotas\tdenied\tshare", s.Points, func(p replay.SweepPoint) string {
			return fmt.Sprintf("× %g (%s)\t%d\t%s", p.Factor, numbers(p.Quotas), p.Denied, Share(p.Denied, s.Requests))
		})
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// name returns the text that is shown for a key.
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

func table[T any](b *strings.Builder, head string, rows []T, row func(T) string) {
	if len(rows) == 0 {
		return
	}
	lines := "\n  " + head + "\n"
	for _, r := range rows {
		lines += "  " + row(r) + "\n"
	}
	_ = Align(b, lines) // to memory
}

// Align writes lines whose cells are separated by tabs.
func Align(w io.Writer, lines string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, err := io.WriteString(t, lines)
	return errors.Join(err, t.Flush())
}

// Notes returns, in words, the notes that a reader of the report needs.
func Notes(r *replay.Report) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if r.Malformed > 0 {
		add("left out: %s that cannot be read", Plural(r.Malformed, "line", "lines"))
	}
	if r.OutOfOrder > 0 {
		add("out of order: %s, by at most %v; decided at the time of the newest request before", Plural(r.OutOfOrder, "request", "requests"), r.LongestBack)
	}
	if r.WholeSeconds {
		add("the log has times in whole seconds: requests of the same second are decided at the same instant")
	}
	for _, what := range r.Missing {
		add("the policies read a value that the log lacks: %s; requests are decided without it", Plain(what))
	}
	if len(r.Waits) > 0 {
		add("nobody waits: requests that would have waited for their turn count as denied (policies with wait: %s)", Plain(strings.Join(r.Waits, ", ")))
	}
	if n := max(r.KeysMissed, r.Clients.Missed); n > 0 {
		add("there are too many keys or clients: the lists leave out the last of them, with %s", Plural(n, "request", "requests"))
	}
	return notes
}

// Plural writes a number and the word for it.
func Plural(n int64, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func at(s replay.Series, i int) time.Time { return s.Start.Add(time.Duration(i) * s.Width) }

// worstPoints returns the points with the most denied, in order of time.
func worstPoints(s replay.Series) []int {
	var worst []int
	for i, p := range s.Points {
		if p.Denied > 0 {
			worst = append(worst, i)
		}
	}
	slices.SortStableFunc(worst, func(a, b int) int { return cmp.Compare(s.Points[b].Denied, s.Points[a].Denied) })
	worst = worst[:min(5, len(worst))]
	slices.Sort(worst)
	return worst
}

// Lines makes text of several lines harmless for a terminal.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(Escape(line), `\\`, `\`)
	}
	return strings.Join(lines, "\n")
}

// JSON writes a report as JSON in ASCII: a terminal would obey some other characters, which may
// come from a log.
func JSON(w io.Writer, r *replay.Report) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	ascii := make([]byte, 0, len(text)+1)
	for _, unit := range utf16.Encode([]rune(string(text))) {
		if unit < 0x7f {
			ascii = append(ascii, byte(unit))
		} else {
			ascii = fmt.Appendf(ascii, `\u%04x`, unit)
		}
	}
	_, err = w.Write(append(ascii, '\n'))
	return err
}
