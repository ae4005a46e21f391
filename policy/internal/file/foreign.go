package file

import (
	"regexp"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
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
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.String()
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// limitHint explains limits text that has an error; item is the text of one limit.
func limitHint(item, problem string) string {
	if strings.HasPrefix(problem, "Precision: 0s") {
		return precisionHint
	}
	if problem[0] >= 'A' && problem[0] <= 'Z' {
		return "" // a field of a limit that has been understood
	}
	for _, word := range strings.Fields(item)[min(1, len(strings.Fields(item))):] {
		if hint := algorithmHint(word); hint != "" {
			return hint
		}
		if name, _, _ := strings.Cut(word, "="); !slices.Contains([]string{"aligned", "burst", "precision", "name"}, name) && !isAlgorithm(word) {
			return "the algorithms are " + algorithmNames() + "; behind the limit may also stand aligned, burst=, precision= and name="
		}
	}
	return "a limit is a quota, a slash and a window, as in 3/6s or 100/2h; behind it an algorithm, burst=, precision=, aligned and name= may stand"
}

func isAlgorithm(word string) bool {
	return slices.ContainsFunc(algorithms, func(a core.Algorithm) bool { return a.String() == word })
}

const precisionHint = "bucketed_window needs the length of its buckets: write bucketed_window precision=1s, or the field precision: 1s"

// variable is text that a shell would replace.
var variable = regexp.MustCompile(`^\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)$`)
