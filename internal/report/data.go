package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/internal/replay"
)

// JSON writes a report as JSON.
func JSON(w io.Writer, r *replay.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// CSV writes a report as one table, RFC 4180: the policy file, what a line is
// of (total, policy, key, route, time, client, sweep), its name, and counts.
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
	line("file", "of", "policy", "rule", "name", "requests", "refused", "rehearsed")
	for i := range r.Files {
		f := &r.Files[i]
		line(f.File, "total", "", "", "", f.Admitted+f.Refused, f.Refused, f.Rehearsed)
		for _, p := range f.Policies {
			line(f.File, "policy", p.Policy, "", "", "", p.Refused, p.Rehearsed)
		}
		for _, k := range f.Keys {
			line(f.File, "key", k.Policy, k.Rule, k.Key, k.Requests, k.Refused, "")
		}
		for _, x := range f.Routes {
			line(f.File, "route", "", "", x.Route, x.Requests, x.Refused, "")
		}
		for j, p := range f.Series.Points {
			line(f.File, "time", "", "", at(f.Series, j).UTC().Format(time.RFC3339), p.Admitted+p.Refused, p.Refused, p.Rehearsed)
		}
		for _, x := range f.Clients.Examples {
			line(f.File, "client", "", "", x.Client, x.Requests, x.Refused, "")
		}
		for _, s := range f.Sweeps {
			for _, p := range s.Points {
				line(f.File, "sweep", s.Policy, "", strconv.FormatFloat(p.Factor, 'g', -1, 64), s.Requests, p.Refused, "")
			}
		}
	}
	c.Flush()
	return c.Error()
}

// Cell makes text harmless in a spreadsheet: what it would take for a formula
// gets an apostrophe before it (OWASP, CSV injection), and control characters
// are escaped. It cuts nothing: programs read the table too.
func Cell(s string) string {
	s = Escape(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}
