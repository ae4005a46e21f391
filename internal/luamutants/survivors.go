//go:build unix

package main

import (
	"fmt"
	"strings"
)

// parseSurvivors reads the breaks that nothing can observe, each with the reason.
// The head of survivors.txt explains the form.
func parseSurvivors(text string) (map[key]string, error) {
	found := map[key]string{}
	var k key
	number := 0
	check := func() error {
		if k.file != "" && found[k] == "" {
			return fmt.Errorf("line %d: %s %s: the source line or the reason is missing", number, k.file, k.change)
		}
		return nil
	}
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case line[0] != '\t':
			if err := check(); err != nil {
				return nil, err
			}
			file, change, ok := strings.Cut(trimmed, " ")
			if strings.HasSuffix(trimmed, " breaks") || strings.HasSuffix(trimmed, " %") {
				continue // of the output of a run
			}
			if !ok || !strings.Contains(change, "→") {
				return nil, fmt.Errorf("line %d: %q: must be a file and a change", number, trimmed)
			}
			k = key{file: file, change: change}
		case k.source == "":
			if !strings.Contains(trimmed, "«") {
				return nil, fmt.Errorf("line %d: %q: must be a source line with the changed part in «»", number, trimmed)
			}
			k.source = trimmed
			if found[k] != "" {
				return nil, fmt.Errorf("line %d: %q: is listed twice", number, trimmed)
			}
		default:
			found[k] = strings.TrimSpace(found[k] + " " + trimmed)
		}
	}
	return found, check()
}
