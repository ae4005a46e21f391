// Package words formats values and errors for the messages of package policy.
package words

import (
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Shorten cuts text that is too long for a message.
func Shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:57], "") + "..."
	}
	return s
}

// Shown returns what a message shows of a value that may be an address with a
// password: nothing before an @, and no parameters of a URL.
func Shown(s string) string {
	at, parameters := strings.LastIndexByte(s, '@'), strings.IndexByte(s, '?')
	switch {
	case at >= 0 && parameters >= 0:
		return "..."
	case at >= 0:
		return Shorten("..." + s[at:])
	case parameters >= 0 && strings.Contains(s, "://"):
		return Shorten(s[:parameters] + "?...")
	}
	return Shorten(s)
}

// Reason returns the text of an error of package core, without the parts that
// the place of the message makes clear.
func Reason(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if _, rest, found := strings.Cut(line, ", item 1: "); found {
			line = rest
		}
		lines = append(lines, strings.TrimPrefix(line, core.ErrConfig.Error()+": "))
	}
	return strings.Join(lines, "; ")
}

// Duration writes a length of time without its zeros: 1h30m, not 1h30m0s.
func Duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Nearest suggests the word that is most like what somebody has written.
func Nearest(s string, words []string) string {
	best, least := "", len(s)/2+1
	for _, w := range words {
		if d := distance(strings.ToLower(s), strings.ToLower(w)); d < least && d < len(w) {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is the Levenshtein distance, for short words.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			before, row[j+1] = row[j+1], min(before+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
