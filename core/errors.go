package core

import "errors"

// Errors of this package are wrapped: compare with [errors.Is].
var (
	// SkipRule is the error of a KeyFunc whose rule does not apply to the request. The log warns
	// once if a rule skips its first requests; wrap SkipRule to avoid that.
	SkipRule = errors.New("floodgate: the rule does not apply to this request") //nolint:staticcheck // named as fs.SkipDir is: an answer, not a failure

	// ErrBadRequest is the error of a KeyFunc or hook that finds the request at fault: the answer
	// is 400, or 429 if another key is over a limit. See [BadRequestError].
	ErrBadRequest = errors.New("floodgate: bad request")

	// ErrConfig is wrapped by every error about a configuration or an argument out of range.
	ErrConfig = errors.New("floodgate: configuration")

	// ErrUnknownRule is the error for a [Hit] whose rule the limiter does not have.
	ErrUnknownRule = errors.New("floodgate: unknown rule")

	// ErrWaitTooLong is the error of a request whose turn would come too late.
	ErrWaitTooLong = errors.New("floodgate: the wait is too long")

	// ErrLineFull is the error of a request if too many wait: see Config.MaxWaiters.
	ErrLineFull = errors.New("floodgate: too many requests are waiting")

	// ErrBodyRead is the error of [Request].Body if a middleware before the limiter has read it.
	ErrBodyRead = errors.New("floodgate: the body was read by a middleware before the limiter")

	// ErrDamaged is the error if a damaged stored counter gave senseless results.
	ErrDamaged = errors.New("floodgate: a stored counter is damaged")

	// ErrContended is the error of an operation that gave up because of concurrent changes.
	ErrContended = errors.New("floodgate: too many others changed the counter meanwhile")

	// ErrNotCharged is the error of an operation of [Counters] that certainly charged nothing: it
	// may be repeated.
	ErrNotCharged = errors.New("floodgate: nothing was charged")

	// ErrUnsupported is the error of an operation that the store does not know.
	ErrUnsupported = errors.New("floodgate: not supported")

	// ErrDegraded is the error of Block, Grant, Reset or ResetAll if the store did it in this
	// process only, because the shared store does not answer.
	ErrDegraded = errors.New("floodgate: done in this process only")

	// ErrClosed is the error of an operation on a closed store.
	ErrClosed = errors.New("floodgate: store is closed")
)

// BadRequestError is an [ErrBadRequest] with a text for the client. A KeyFunc or hook returns a
// pointer to it, which may be wrapped.
type BadRequestError struct {
	// Detail is the text that [DefaultHooks] sends to the client. It must come from
	// configuration, such as the name of a field, and never from the client.
	Detail string
}

// Error returns the text of ErrBadRequest, followed by Detail.
func (e *BadRequestError) Error() string { return ErrBadRequest.Error() + ": " + e.Detail }

// Unwrap returns [ErrBadRequest].
func (e *BadRequestError) Unwrap() error { return ErrBadRequest }
