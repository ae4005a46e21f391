package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// Error is one mistake in a policy file. Load and Parse report all mistakes at once, in the order
// of the file: errors.Join of one Error for each. errors.As returns one of them, and [Errors]
// returns all.
type Error struct {
	// File is the file's name, as it was given.
	File string
	// Line and Column are the place, from 1. Both are 0 if the Error is about the whole file.
	Line, Column int
	// Field is the path of the field, such as policies[0].tiers.paid. It is "" if the Error is
	// about no field.
	Field string
	// Problem describes the mistake and quotes the value.
	Problem string
	// Hint is what to write instead; it may be "".
	Hint string
}

// Error returns everything on one line: file:line:column: field: problem (hint).
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Column > 0 {
		fmt.Fprintf(&b, ":%d", e.Column)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Errors returns all Errors in an error of Load or Parse.
func Errors(err error) []*Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, e := range joined.Unwrap() {
			all = append(all, Errors(e)...)
		}
		return all
	}
	var e *Error
	if errors.As(err, &e) {
		return []*Error{e}
	}
	return nil
}

// mistakes collects the errors of a file.
type mistakes struct {
	file string
	errs []*Error
}

// add adds a mistake at a place.
func (m *mistakes) add(at file.Place, problem, hint string) {
	m.errs = append(m.errs, &Error{File: m.file, Line: at.Line, Column: at.Column, Field: at.Field, Problem: problem, Hint: hint})
}

// field adds a mistake that is known by its field alone.
func (m *mistakes) field(path, problem, hint string) {
	m.add(file.Place{Field: path}, problem, hint)
}

// join sorts the errors by their places and joins them.
func (m *mistakes) join() error {
	slices.SortStableFunc(m.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var all []error
	for _, e := range m.errs {
		all = append(all, e)
	}
	return errors.Join(all...)
}

func (m *mistakes) found() bool { return len(m.errs) > 0 }

// secret returns the text of a secret.
func (m *mistakes) secret(s file.Secret) string {
	text, err := s.Text()
	if err != nil {
		m.add(s.At(), err.Error(), "")
	}
	return text
}
