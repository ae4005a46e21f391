//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
)

// survivors are the mutants that nothing can observe, each with the reason. The
// head of survivors.txt explains the file.
type survivors map[key]string

func readSurvivors(file string) (survivors, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := parseSurvivors(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func parseSurvivors(text string) (survivors, error) {
	found := survivors{}
	var k key
	number := 0
	done := func() error {
		if k != (key{}) && found[k] == "" {
			return fmt.Errorf("line %d: %s %s: the source line or the reason is missing", number, k.area, k.function)
		}
		return nil
	}
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case line[0] != '\t':
			if err := done(); err != nil {
				return nil, err
			}
			fields := strings.Fields(line)
			if len(fields) != 3 {
				return nil, fmt.Errorf("line %d: %q: must be an area, a function and a mutator", number, trimmed)
			}
			k = key{area: fields[0], function: fields[1], mutator: fields[2]}
		case k.source == "":
			if !strings.Contains(trimmed, "«") {
				return nil, fmt.Errorf("line %d: %q: must be a source line with the operator in «»", number, trimmed)
			}
			if k.source = trimmed; found[k] != "" {
				return nil, fmt.Errorf("line %d: %q: is listed twice", number, trimmed)
			}
		default:
			found[k] = strings.TrimSpace(found[k] + " " + trimmed)
		}
	}
	return found, done()
}
