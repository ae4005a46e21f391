// Package words formats values and errors for the messages of package policy.
package words

import (
	"regexp"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Shorten cuts text that is too long for a message.
func Shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:57], "") + "..."
	}
	return s
}

// Shown returns what a message shows of a value that may be an address with a password:
// nothing of one with an @ or a ?.
func Shown(s string) string {
	if strings.ContainsAny(s, "@?") {
		return "..."
	}
	return Shorten(s)
}

// rule is the beginning of an error of core.New about a rule.
var rule = regexp.MustCompile(`^Rules\[\d+\] \("[^"]*"\)\.`)

// Reason returns the text of an error of package core, without the parts that
// the place of the message makes clear.
func Reason(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if _, rest, found := strings.Cut(line, ", item 1: "); found {
			line = rest
		}
		lines = append(lines, rule.ReplaceAllString(strings.TrimPrefix(line, core.ErrConfig.Error()+": "), ""))
	}
	return strings.Join(lines, "; ")
}
