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

// Unmark returns err; if it wraps [core.ErrNotCharged], an error with its text
// that wraps nothing. A store calls it if the operation that failed has charged
// nothing, but an earlier one has.
func Unmark(err error) error {
	if errors.Is(err, core.ErrNotCharged) {
		return errors.New(err.Error())
	}
	return err
}
