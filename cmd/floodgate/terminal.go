package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/report"
	"github.com/floodgate-go/floodgate/policy"
)

// The colours of a terminal.
const (
	green = "\x1b[32m"
	red   = "\x1b[31m"
	faint = "\x1b[2m"
	plain = "\x1b[0m"
)

// forPeople reports whether an output is for a person: it is a terminal and NO_COLOR
// (https://no-color.org) is not set, or CLICOLOR_FORCE is. Programs get one plain line for each result.
func forPeople(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if os.Getenv("CLICOLOR_FORCE") != "" {
		return true
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// printFine writes a line about a file without mistakes.
func printFine(w io.Writer, line string) error {
	if forPeople(w) {
		line = green + "✓ " + plain + line
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// printMistake writes a mistake in a policy file; for a person, with its line and a caret.
func printMistake(w io.Writer, e *policy.Error) {
	line := report.Lines(e.Error())
	if forPeople(w) {
		line = red + "✗ " + plain + line + faint + source(e) + plain
	}
	_, _ = fmt.Fprintln(w, line)
}

// source returns the line of a mistake, and a caret below its column.
func source(e *policy.Error) string {
	text, err := read(e.File)
	if err != nil || e.Line < 1 {
		return ""
	}
	lines := bytes.Split(text, []byte("\n"))
	if e.Line > len(lines) || len(lines[e.Line-1]) > 200 {
		return ""
	}
	line := report.Escape(string(bytes.TrimRight(lines[e.Line-1], "\r")))
	return "\n    " + line + "\n    " + strings.Repeat(" ", max(e.Column-1, 0)) + "^"
}
