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
