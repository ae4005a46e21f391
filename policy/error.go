package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing that is wrong with a policy file. Load and Parse report
// what is wrong at once, in the order of the file: errors.Join of an Error each.
// Behind the first 100, one more says how many there are. Get at a single one with errors.As, at all with [Errors].
type Error struct {
	// File is the file's name, as it was given.
	File string
	// Line and Column are the place, from 1; both 0 where the file as a whole is
	// meant.
	Line, Column int
	// Field is the path of the field, such as policies[0].rules[1].limits; ""
	// where none is meant.
	Field string
	// Problem says what is wrong, with the value.
	Problem string
	// Hint says what would be right; it may be "".
	Hint string
}

// Error returns everything on one line: file:line:column: field: problem (hint).
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
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

// Errors returns the Errors that err, of Load or Parse, was made of.
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

// maxErrors is how many errors of a file are reported.
const maxErrors = 100

// join sorts the errors by their places, and reports the first ones.
func join(errs []*Error) error {
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors:maxErrors], &Error{File: errs[0].File, Problem: fmt.Sprintf("and %d more errors", more)})
	}
	all := make([]error, len(errs))
	for i, e := range errs {
		all[i] = e
	}
	return errors.Join(all...)
}
