// Package notcharged marks errors of operations that have charged nothing.
package notcharged

import (
	"errors"

	"github.com/floodgate-go/floodgate/core"
)

// Error returns an error with the text of err that wraps err and
// [core.ErrNotCharged]; nil if err is nil.
func Error(err error) error {
	if err == nil || errors.Is(err, core.ErrNotCharged) {
		return err
	}
	return &marked{err}
}

type marked struct{ error }

func (e *marked) Is(target error) bool { return target == core.ErrNotCharged }
func (e *marked) Unwrap() error        { return e.error }

// Unmark returns an error with the text of err that wraps all that err wraps but
// [core.ErrNotCharged]; nil if err is nil. A store calls it if the operation that failed
// has charged nothing, but an earlier one has.
func Unmark(err error) error {
	if !errors.Is(err, core.ErrNotCharged) {
		return err
	}
	return &unmarked{err}
}

type unmarked struct{ error }

func (e *unmarked) Is(target error) bool {
	return target != core.ErrNotCharged && errors.Is(e.error, target)
}

func (e *unmarked) As(target any) bool { return errors.As(e.error, target) }
