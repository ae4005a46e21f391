package file

import (
	"regexp"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// foreignAlgorithms are the names that other software has for algorithms, and what to
// write here.
var foreignAlgorithms = map[string]string{
	"moving_window":               "moving_window is called sliding_log here; sliding_window takes less memory and is nearly as exact",
	"sliding_window_log":          "sliding_window_log is called sliding_log here",
	"sliding_window_counter":      "sliding_window_counter is called sliding_window here",
	"leaky_bucket":                "leaky_bucket as a meter is called token_bucket here; there is no queue that delays requests",
	"gcra":                        "gcra is called token_bucket here",
	"elastic":                     "there is no window that each hit prolongs: sliding_window counts hits until they are a window old",
	"fixed_window_elastic_expiry": "there is no window that each hit prolongs: sliding_window counts hits until they are a window old",
}

// algorithmHint returns the algorithm that an unknown name means; "" if that is
// not known.
func algorithmHint(name string) string {
	return foreignAlgorithms[strings.ReplaceAll(strings.ToLower(name), "-", "_")]
}

// algorithmNames is the names of all algorithms, for messages.
func algorithmNames() string {
	names := algorithmList()
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func algorithmList() (names []string) {
	for _, a := range algorithms {
		names = append(names, a.String())
	}
	return names
}

// limitHint explains limits text that has an error; item is the text of one limit.
func limitHint(item, problem string) string {
	if strings.HasPrefix(problem, "Precision: 0s") {
		return precisionHint
	}
	if strings.HasPrefix(problem, "zone: ") {
		return "" // the problem says what to write
	}
	if strings.HasPrefix(problem, "Zone: ") && strings.Contains(problem, "is not a day") {
		return zoneHint
	}
	if problem[0] >= 'A' && problem[0] <= 'Z' {
		return "" // a field of a limit that has been understood
	}
	first, rest := "", strings.Fields(slash.ReplaceAllString(item, "/$1"))
	if len(rest) > 0 {
		first, rest = rest[0], rest[1:]
	}
	if !strings.Contains(first, "/") {
		return formOfALimit
	}
	for _, word := range rest {
		if hint := algorithmHint(word); hint != "" {
			return hint
		}
		if _, err := core.ParseLimits(first + word); err == nil && first[len(first)-1] <= '9' {
			return "write " + first + word + ", without a space"
		}
		if name, _, _ := strings.Cut(word, "="); !slices.Contains([]string{"aligned", "burst", "precision", "name"}, name) && !isAlgorithm(word) {
			hint := words.Nearest(strings.ReplaceAll(word, "-", "_"), algorithmList())
			if hint == "" {
				hint = "the algorithms are " + algorithmNames()
			}
			return hint
		}
	}
	return formOfALimit
}

// slash is a slash or the word per, with what may stand around it.
var slash = regexp.MustCompile(`\s*/\s*|(?i:\s+per\s+)(?:(\d+)\s+)?`)

const formOfALimit = "a limit is a quota, a slash and a window, as in 3/6s or 100/2h; an algorithm, burst=, precision=, aligned and name= may follow; or 10 in flight, which lease= and name= may follow"

func isAlgorithm(word string) bool {
	return slices.ContainsFunc(algorithms, func(a core.Algorithm) bool { return a.String() == word })
}

const zoneHint = "a time zone stands behind the window day, week or month"

const precisionHint = "bucketed_window needs the length of its buckets: write bucketed_window precision=1s, or the field precision: 1s"

// variable is text that a shell would replace.
var variable = regexp.MustCompile(`^\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)$`)
