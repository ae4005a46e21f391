package core

import "errors"

var (
	// SkipRule is returned by a KeyFunc to say that its rule does not apply to
	// the request, as fs.SkipDir says that a directory is left out. It may be
	// wrapped.
	SkipRule = errors.New("floodgate: the rule does not apply to this request") //nolint:staticcheck // named as fs.SkipDir is: an answer, not a failure

	// ErrBadRequest is for wrapping: in the error of a KeyFunc or of a hook it says that
	// the request itself is at fault: it is answered with 400 (or 429, where
	// one of its other keys is over a limit).
	ErrBadRequest = errors.New("floodgate: bad request")

	// ErrConfig is wrapped by every error that New, Reconfigure and Limits
	// return for a configuration that cannot work.
	ErrConfig = errors.New("floodgate: configuration")

	// ErrUnknownRule is wrapped by the error of a Take, Peek, Refund or Reset
	// that names a rule which the limiter does not have.
	ErrUnknownRule = errors.New("floodgate: unknown rule")

	// ErrNegativeCost is wrapped by the error for a cost below zero.
	ErrNegativeCost = errors.New("floodgate: negative cost")

	// ErrClosed is wrapped by the error of a store that has been closed.
	ErrClosed = errors.New("floodgate: store is closed")
)
