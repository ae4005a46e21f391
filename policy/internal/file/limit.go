package file

import (
	"fmt"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// limitMapping returns the table of a limit that is written with its fields.
func limitMapping() *mapping[core.Limit] {
	var algorithm []word[core.Algorithm]
	for _, a := range algorithms {
		algorithm = append(algorithm, word[core.Algorithm]{a.String(), a})
	}
	quota := func(l *core.Limit) *int64 { return &l.Quota }
	milliseconds := whole[int64](1, int64(core.MaxWindow/time.Millisecond))
	return &mapping[core.Limit]{
		name: "limit", want: limitWant, about: "A limit that is written with its fields. Text such as `10/s token_bucket burst=20` says the same.",
		fields: []field[core.Limit]{
			{
				name: "quota", example: "100",
				about: "The number of hits that are allowed in a window.",
				value: set(whole[int64](0, core.MaxQuota), quota),
			}, {
				name: "window", example: "1h",
				about: "The length of the window; with `zone`, `day`, `week` or `month`.",
				value: then(length("a window such as 6s, 500ms, 2h or month", true), func(_ *reader, _ value, l *core.Limit, d time.Duration) {
					if l.Window = d; d == month && l.Zone == nil {
						l.Zone = time.UTC
					}
				}),
			}, {
				name: "zone", without: "a window has a fixed length; of a month: `UTC`", example: "Europe/Berlin",
				about: "The time zone whose calendar decides when a window begins; the window is `day`, `week` or `month`, and the algorithm `fixed_window`.",
				value: set(zone(), func(l *core.Limit) **time.Location { return &l.Zone }),
			}, {
				name: "maximumRequests", example: "3",
				about: "The quota, as MuleSoft writes it; the algorithm is `fixed_window` unless another one is given.",
				value: set(whole[int64](0, core.MaxQuota), quota),
			}, {
				name: "timePeriodInMilliseconds", example: "6000",
				about: "The length of the window in milliseconds, as MuleSoft writes it.",
				value: then(milliseconds, func(_ *reader, _ value, l *core.Limit, ms int64) { l.Window = time.Duration(ms) * time.Millisecond }),
			}, {
				name: "algorithm", initial: algorithms[0].String(), example: "fixed_window",
				about: "The algorithm that counts; with `zone`, the window `month` or `maximumRequests`, the default is `fixed_window`.",
				value: set(choice(algorithm...), func(l *core.Limit) *core.Algorithm { return &l.Algorithm }),
			}, {
				name: "burst", without: "the quota", example: "20",
				about: "The largest number of hits at once; for `token_bucket` only.",
				value: set(whole[int64](1, core.MaxQuota), func(l *core.Limit) *int64 { return &l.Burst }),
			}, {
				name: "precision", example: "1s",
				about: "The length of a bucket, which divides the window; `bucketed_window` needs it, and no other algorithm has it.",
				value: set(duration("a length of time such as 1s"), func(l *core.Limit) *time.Duration { return &l.Precision }),
			}, {
				name: "aligned", initial: "false", example: "true",
				about: "If true, windows begin at multiples of their length; for `fixed_window` and `sliding_window` only.",
				value: set(boolean(), func(l *core.Limit) *bool { return &l.Aligned }),
			}, {
				name: "name", without: "the rule's name, followed by the window if the rule has several limits", example: "burst",
				about: "The limit's name in headers.",
				value: set(name(), func(l *core.Limit) *string { return &l.Name }),
			},
		},
		together: "`quota` and `window` are given, or `maximumRequests` and `timePeriodInMilliseconds`.",
		check: func(m filled, l *core.Limit) {
			oneSpelling(m)
			if !m.fine() {
				return
			}
			if (l.Zone != nil || m.has("maximumRequests")) && !m.has("algorithm") {
				l.Algorithm = core.FixedWindow
			}
			switch l.Window {
			case month:
				l.Window = core.Month
			case core.Month:
				if l.Zone != nil {
					m.r.bad(m.value, "a window of 31 days is not a month", "write window: month")
					return
				}
			}
			if err := l.Validate(); err != nil {
				hint := ""
				if l.Algorithm == core.BucketedWindow && l.Precision == 0 {
					hint = precisionHint
				}
				if l.Zone != nil && l.Algorithm == core.FixedWindow && !l.Aligned {
					hint = "with zone, write window: day, week or month"
				}
				m.r.bad(m.value, words.Reason(err), hint)
			}
			doubtZero(m, l)
		},
	}
}

// doubtZero warns of a quota of 0.
func doubtZero(m filled, l *core.Limit) {
	for _, name := range []string{"quota", "maximumRequests"} {
		if m.has(name) && l.Quota == 0 {
			m.r.doubt(m.given[name], "0: denies all requests", deniesAllHint)
		}
	}
}

// month stands for a month until the limit has been read: 31 days may be written
// as they are.
const month = -core.Month

// zone is the name of a time zone.
func zone() kind[*time.Location] {
	const want = "a time zone such as Europe/Berlin or UTC"
	shape := always("the name of a time zone of the IANA database, such as `Europe/Berlin` or `UTC`",
		object{{"type", "string"}, {"pattern", "^[A-Z][A-Za-z0-9_+/-]{0,63}$"}})
	return kind[*time.Location]{shape, func(r *reader, v value) (*time.Location, bool) {
		text, ok := r.text(v, want)
		if !ok {
			return nil, false
		}
		problem := fmt.Sprintf("%q: want %s", words.Shown(text), want)
		if !strings.ContainsAny(text, " ,\t\n") {
			limits, err := core.ParseLimits("1/day " + text)
			if err == nil && limits[0].Zone != nil {
				return limits[0].Zone, true
			}
			if err != nil && text[0] >= 'A' && text[0] <= 'Z' {
				problem = words.Reason(err)
			}
		}
		r.bad(v, problem, "")
		return nil, false
	}}
}

// oneSpelling notes a limit without both fields of one of the two spellings.
func oneSpelling(m filled) {
	quota, window := m.has("quota"), m.has("window")
	requests, period := m.has("maximumRequests"), m.has("timePeriodInMilliseconds")
	switch {
	case (quota || window) && (requests || period):
		m.r.bad(m.value, "has both spellings of a limit", "write quota and window, or maximumRequests and timePeriodInMilliseconds")
	case requests != period:
		m.r.bad(m.value, "maximumRequests and timePeriodInMilliseconds are both needed", "")
	case !requests && (!quota || !window):
		m.r.bad(m.value, "quota and window are both needed", "")
	}
}
