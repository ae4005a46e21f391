package core

import (
	"errors"
	"fmt"
)

// fieldError is one thing that is wrong with a configuration.
type fieldError struct {
	field   string // its path, such as Rules[0].Name
	problem string // the value, and what is wrong with it
}

// Error implements error.
func (e *fieldError) Error() string { return ErrConfig.Error() + ": " + e.field + ": " + e.problem }

// Unwrap makes the error an [ErrConfig].
func (e *fieldError) Unwrap() error { return ErrConfig }

// within puts the path of a part of a configuration before the fields that err,
// of that part, names.
func within(path string, err error) error {
	return eachError(err, func(one error) error {
		if e, ok := one.(*fieldError); ok { //nolint:errorlint // an error that wraps one has the path already
			return &fieldError{path + "." + e.field, e.problem}
		}
		return fmt.Errorf("%s: %w", path, one)
	})
}

// eachError returns f of err, or, if err joins several errors, f of each of
// them: what f adds is then on every line of the text.
func eachError(err error, f func(error) error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return f(err)
	}
	var errs []error
	for _, one := range joined.Unwrap() {
		errs = append(errs, eachError(one, f))
	}
	return errors.Join(errs...)
}
