package quotas

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// Unlimited is the word for a quota that never denies.
const Unlimited = "unlimited"

// Want describes what a row may be, for messages.
const Want = "want a quota such as 500, quotas and the windows of the rule's limits such as 1000/m, 20000/d, or " + Unlimited

// maxText is the length of the longest text of a row, in bytes.
const maxText = 1000

// Row has the quotas of a key: one for the rule's only limit, or one for each of
// some windows. The zero Row has none.
type Row struct {
	every int64 // the quota of all limits, if parts is nil
	parts []part
}

// part is the quota of the limit of a window.
type part struct {
	window time.Duration
	quota  int64
}

// Number returns the row of a number, which is 0 to core.MaxQuota.
func Number(quota int64) Row { return Row{every: quota} }

// ParseRow reads the text of a row.
func ParseRow(text string) (row Row, problem, hint string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Row{}, "has no quota", Want
	case len(text) > maxText:
		return Row{}, fmt.Sprintf("quotas of %d bytes: at most %d", len(text), maxText), ""
	case text == Unlimited:
		return Row{every: core.Unlimited}, "", ""
	case strings.Trim(text, "0123456789") == "":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > core.MaxQuota {
			return Row{}, fmt.Sprintf("%q: is more than %d", words.Shorten(text), core.MaxQuota), "write " + Unlimited + " for no limit"
		}
		return Number(n), "", ""
	}
	for item := range strings.SplitSeq(text, ",") {
		p, problem, hint := parsePart(strings.TrimSpace(item))
		if problem != "" {
			return Row{}, problem, hint
		}
		if slices.ContainsFunc(row.parts, func(o part) bool { return o.window == p.window }) {
			return Row{}, fmt.Sprintf("%q: the window %s stands twice", words.Shorten(text), words.Duration(p.window)), "leave one out"
		}
		row.parts = append(row.parts, p)
	}
	return row, "", ""
}

// parsePart reads a quota and a window.
func parsePart(item string) (p part, problem, hint string) {
	said := item
	rest, unlimited := strings.CutPrefix(item, Unlimited)
	if unlimited {
		said = "0" + rest
	}
	if !strings.Contains(said, "/") && !strings.Contains(said, " ") {
		return part{}, fmt.Sprintf("%q: is no quota", words.Shorten(item)), Want
	}
	limits, err := core.ParseLimits(said)
	if err != nil {
		return part{}, fmt.Sprintf("%q: %s", words.Shorten(item), words.Reason(err)), Want
	}
	l := limits[0]
	month := core.PerMonth(l.Quota) // the row may leave out of which zone it is
	if l != (core.Limit{Quota: l.Quota, Window: l.Window}) && l != month {
		return part{}, fmt.Sprintf("%q: says more than a quota and a window", words.Shorten(item)), "the algorithm of a limit, its time zone, its burst and its name stand in the policy file"
	}
	p = part{l.Window, l.Quota}
	if unlimited {
		p.quota = core.Unlimited
	}
	return p, "", ""
}

// Quota returns the quota of a limit; false if the row does not have one.
func (row *Row) Quota(l *core.Limit) (int64, bool) {
	if row.parts == nil {
		return row.every, true
	}
	for _, p := range row.parts {
		if p.window == l.Window {
			return p.quota, true
		}
	}
	return 0, false
}

// Check returns what is wrong with the row for a rule: sets has the rule's limits,
// or those of each of its tiers.
func (row *Row) Check(sets [][]core.Limit) (problem, hint string) {
	if row.parts == nil {
		for _, limits := range sets {
			if row.every != core.Unlimited && len(limits) > 1 {
				return fmt.Sprintf("%q: the rule has %d limits", strconv.FormatInt(row.every, 10), len(limits)),
					"write a window behind each quota, as in " + spelled(limits)
			}
		}
	}
	for _, p := range row.parts {
		if !slices.ContainsFunc(sets, func(limits []core.Limit) bool {
			return slices.ContainsFunc(limits, func(l core.Limit) bool { return l.Window == p.window })
		}) {
			var all []core.Limit
			for _, limits := range sets {
				all = append(all, limits...)
			}
			return "the rule has no limit with a window of " + words.Duration(p.window), "its limits are " + spelled(all)
		}
	}
	for _, limits := range sets {
		for i := range limits {
			q, found := row.Quota(&limits[i])
			if found && q != core.Unlimited && limits[i].Algorithm == core.SlidingLog && q > core.MaxLogQuota {
				return fmt.Sprintf("%d: is more than %d, the largest quota of a %s", q, core.MaxLogQuota, core.SlidingLog), "write a smaller quota, or choose another algorithm in the policy file"
			}
		}
	}
	return "", ""
}

// spelled writes limits as a row has them.
func spelled(limits []core.Limit) string {
	var all []string
	for _, l := range limits {
		all = append(all, fmt.Sprintf("%d/%s", l.Quota, windowOf(l)))
	}
	return strings.Join(all, ", ")
}

// windowOf writes a limit's window as a row has it.
func windowOf(l core.Limit) string {
	if l.Zone != nil && l.Window == core.Month {
		return "month"
	}
	return words.Duration(l.Window)
}

// deniesAll reports whether one of the quotas is 0.
func (row *Row) deniesAll() bool {
	return row.parts == nil && row.every == 0 || slices.ContainsFunc(row.parts, func(p part) bool { return p.quota == 0 })
}
