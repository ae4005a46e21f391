package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/replay"
)

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

// CSV writes a report as one table, RFC 4180: the policy file, the kind of the
// line (total, policy, key, route, time, client, sweep), its name, and counts.
func CSV(w io.Writer, r *replay.Report) error {
	c := csv.NewWriter(w)
	line := func(cells ...any) {
		texts := make([]string, len(cells))
		for i, cell := range cells {
			switch v := cell.(type) {
			case string:
				texts[i] = Cell(v)
			case int64:
				texts[i] = strconv.FormatInt(v, 10)
			}
		}
		_ = c.Write(texts) // c.Error tells
	}
	line("file", "of", "policy", "rule", "name", "requests", "denied", "dry_run_denied")
	for i := range r.Files {
		f := &r.Files[i]
		line(f.File, "total", "", "", "", f.Allowed+f.Denied, f.Denied, f.DryRunDenied)
		for _, p := range f.Policies {
			line(f.File, "policy", p.Policy, "", "", "", p.Denied, p.DryRunDenied)
		}
		for _, k := range f.Keys {
			line(f.File, "key", k.Policy, k.Rule, k.Key, k.Requests, k.Denied, "")
		}
		for _, x := range f.Routes {
			line(f.File, "route", "", "", x.Route, x.Requests, x.Denied, "")
		}
		for j, p := range f.Series.Points {
			line(f.File, "time", "", "", at(f.Series, j).UTC().Format(time.RFC3339), p.Allowed+p.Denied, p.Denied, p.DryRunDenied)
		}
		for _, x := range f.Clients.Examples {
			line(f.File, "client", "", "", x.Client, x.Requests, x.Denied, "")
		}
		for _, s := range f.Sweeps {
			for _, p := range s.Points {
				line(f.File, "sweep", s.Policy, "", strconv.FormatFloat(p.Factor, 'g', -1, 64), s.Requests, p.Denied, "")
			}
		}
	}
	c.Flush()
	return c.Error()
}

// Cell makes text harmless in a spreadsheet: text that it would take for a
// formula gets an apostrophe before it (OWASP, CSV injection), and control
// characters are escaped. Cell never cuts text, because programs read the table
// too.
func Cell(s string) string {
	s = Escape(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}
