package file

import (
	"regexp"
	"slices"
	"strings"

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

// algorithmList has the names of all algorithms.
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
	for _, word := range strings.Fields(item) {
		if hint := algorithmHint(word); hint != "" {
			return hint
		}
		if hint := words.Nearest(strings.ReplaceAll(word, "-", "_"), algorithmList()); hint != "" && !slices.Contains(algorithmList(), word) {
			return hint
		}
	}
	return formOfALimit
}

const formOfALimit = "a limit is a quota, a slash and a window, as in 3/6s or 100/2h; an algorithm, burst=, precision=, aligned and name= may follow"

const zoneHint = "a time zone stands behind the window day, week or month"

const precisionHint = "bucketed_window needs the length of its buckets: write bucketed_window precision=1s, or the field precision: 1s"

// variable is text that a shell would replace.
var variable = regexp.MustCompile(`^\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)$`)
