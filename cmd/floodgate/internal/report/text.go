// Package report writes the results of a replay: as text for a terminal, as JSON,
// and as a self-contained page of HTML. The text of a log was written by
// strangers: none of it can have an effect in a terminal or a
// browser.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

// Escape makes text harmless for a terminal: characters that cannot be printed
// are escaped as in a Go string.
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

// Key writes a key so that [ParseKey] reads it again. It quotes the key like a
// Go string if a terminal or a shell would change it. It never cuts the key.
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
	fmt.Fprintf(b, "\n%s: %d allowed, %d denied (%s)", Plain(f.File), f.Allowed, f.Denied, Share(f.Denied, r.Requests))
	if f.Bad > 0 {
		fmt.Fprintf(b, ", %d of them as bad requests with status 400", f.Bad)
	}
	if f.DryRunDenied > 0 {
		fmt.Fprintf(b, "; the dry run would have denied %d (%s)", f.DryRunDenied, Share(f.DryRunDenied, r.Requests))
	}
	b.WriteString("\n")
	table(b, "policy\tdenied\tshare", len(f.Policies), func(i int) string {
		p := f.Policies[i]
		if p.DryRun {
			return fmt.Sprintf("%s (dry run)\t%d\t%s", p.Policy, p.DryRunDenied, Share(p.DryRunDenied, r.Requests))
		}
		return fmt.Sprintf("%s\t%d\t%s", p.Policy, p.Denied, Share(p.Denied, r.Requests))
	})
	table(b, "key\tpolicy\trule\trequests\tdenied", len(f.Keys), func(i int) string {
		k := f.Keys[i]
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%d", name(k.Key), k.Policy, k.Rule, k.Requests, k.Denied)
	})
	table(b, "route\trequests\tdenied\tshare", len(f.Routes), func(i int) string {
		x := f.Routes[i]
		return fmt.Sprintf("%s\t%d\t%d\t%s", Plain(x.Route), x.Requests, x.Denied, Share(x.Denied, x.Requests))
	})
	worst := worstPoints(f.Series, 5)
	table(b, "time\tallowed\tdenied", len(worst), func(i int) string {
		p := f.Series.Points[worst[i]]
		return fmt.Sprintf("%s\t%d\t%d", at(f.Series, worst[i]).Format("2006-01-02 15:04"), p.Allowed, p.Denied)
	})
	c := f.Clients
	fmt.Fprintf(b, "\n  clients: %d, denied at least once: %d\n  honest clients (at most %s in each minute) that were denied: %d, with %s\n",
		c.Clients, c.Denied, plural(c.HonestPerMinute, "request"), c.Honest, plural(c.HonestDenied, "denied request"))
	table(b, "honest client\trequests\tdenied\tbusiest minute", len(c.Examples), func(i int) string {
		x := c.Examples[i]
		return fmt.Sprintf("%s\t%d\t%d\t%d", name(x.Client), x.Requests, x.Denied, x.Busiest)
	})
	for _, s := range f.Sweeps {
		table(b, "policy "+s.Policy+" alone, with quotas\tdenied\tshare", len(s.Points), func(i int) string {
			p := s.Points[i]
			return fmt.Sprintf("× %g (%s)\t%d\t%s", p.Factor, numbers(p.Quotas), p.Denied, Share(p.Denied, s.Requests))
		})
	}
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

// Notes returns, in words, the notes that a reader of the report needs.
func Notes(r *replay.Report) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if r.Malformed > 0 {
		add("left out: %s that cannot be read", plural(r.Malformed, "line"))
	}
	if r.Outliers > 0 {
		add("left out: %s with a time far from the times of the lines around", plural(r.Outliers, "line"))
	}
	if r.OutOfOrder > 0 {
		add("out of order: %s, by at most %v; decided at the time of the newest request before", plural(r.OutOfOrder, "request"), r.LongestBack)
	}
	if r.WholeSeconds {
		add("the log has times in whole seconds: requests of the same second are decided at the same instant")
	}
	for _, what := range r.Missing {
		add("the policies read what the log does not have: %s; requests are decided as if they did not have it", Plain(what))
	}
	for i := range r.Files {
		if f := &r.Files[i]; len(f.Waits) > 0 {
			add("%s: nobody waits: requests that would have waited for their turn count as denied (policies with wait: %s)", Plain(f.File), Plain(strings.Join(f.Waits, ", ")))
		}
		if f := &r.Files[i]; f.KeysMissed > 0 || f.Clients.Missed > 0 {
			add("%s: more than %d keys: rare keys were dropped, and counts by key may be up to %d too low", Plain(f.File), f.KeysHeld, max(f.KeysMissed, f.Clients.Missed))
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

// worstPoints returns the points with the most denied, in order of time.
func worstPoints(s replay.Series, n int) []int {
	var worst []int
	for i, p := range s.Points {
		if p.Denied == 0 {
			continue
		}
		worst = append(worst, i)
		if len(worst) > n {
			least := 0
			for j := range worst {
				if s.Points[worst[j]].Denied < s.Points[worst[least]].Denied {
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

// JSON writes a report as JSON. Characters that cannot be printed, which may come
// from a log, are escaped: a terminal would obey some of them.
func JSON(w io.Writer, r *replay.Report) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return err
	}
	_, err := w.Write(escaped(b.Bytes()))
	return err
}

// escaped escapes what encoding/json does not: DEL, the control characters C1, and
// characters that change the direction of text. They can only be in strings.
func escaped(text []byte) []byte {
	all := make([]byte, 0, len(text))
	for _, c := range string(text) {
		switch {
		case c < 0x7f || strconv.IsPrint(c):
			all = utf8.AppendRune(all, c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			all = fmt.Appendf(all, `\u%04x\u%04x`, high, low)
		default:
			all = fmt.Appendf(all, `\u%04x`, c)
		}
	}
	return all
}
