package core

import "errors"

var (
	// SkipRule is returned by a KeyFunc if its rule does not apply to the request,
	// as fs.SkipDir is returned to leave out a directory. It may be wrapped. The log says
	// once if the first hundred requests of a rule have had no key, unless the error wraps
	// SkipRule: a rule that is only for a few requests returns such an error.
	SkipRule = errors.New("floodgate: the rule does not apply to this request") //nolint:staticcheck // named as fs.SkipDir is: an answer, not a failure

	// ErrBadRequest is wrapped by an error of a KeyFunc or of a hook if the
	// request itself is at fault. The answer is 400, or 429 if another key of
	// the request is over a limit. A [BadRequestError] also has a
	// text for the client.
	ErrBadRequest = errors.New("floodgate: bad request")

	// ErrConfig is wrapped by every error that New, Reconfigure and Limits
	// return for a configuration that cannot work.
	ErrConfig = errors.New("floodgate: configuration")

	// ErrUnknownRule is wrapped by the error of a Take, Peek or Reset
	// that names a rule which the limiter does not have.
	ErrUnknownRule = errors.New("floodgate: unknown rule")

	// ErrNegativeCost is wrapped by the error for a cost below zero.
	ErrNegativeCost = errors.New("floodgate: negative cost")

	// ErrWaitTooLong is wrapped by the error of [Limiter.Wait] if the wait would not
	// end before the context does, or never. Nothing has been charged.
	ErrWaitTooLong = errors.New("floodgate: the wait is too long")

	// ErrLineFull is wrapped by the error of [Limiter.Wait] if too many requests wait
	// already: see Config.MaxWaiters. Nothing has been charged.
	ErrLineFull = errors.New("floodgate: too many requests are waiting")

	// ErrBodyRead is wrapped by the error of [Request].Body if a middleware has
	// read the request's body before the limiter. The limiter must come first.
	ErrBodyRead = errors.New("floodgate: the body was read by a middleware before the limiter")

	// ErrDamaged is wrapped by the error of an operation that failed because of
	// what is stored for one of its keys, as a damaged counter. Other keys of the
	// store are not concerned: package stores/resilient decides such a request as
	// if the store had failed, and goes on asking the store.
	ErrDamaged = errors.New("floodgate: a stored counter is damaged")

	// ErrContended is wrapped by the error of an operation that others have
	// overtaken too often. Nothing has been charged.
	ErrContended = errors.New("floodgate: too many others changed the counter meanwhile")

	// ErrNotCharged is wrapped by the error of an operation, see [Counters], if the store
	// is certain that it has charged nothing and will charge nothing: it was
	// not sent, or the server has rejected it. After any other error the hits may
	// have been charged. Such an operation may be repeated.
	ErrNotCharged = errors.New("floodgate: nothing was charged")

	// ErrUnsupported is wrapped by the error of an operation that the store does not have, and
	// of one that is not for the limits of a rule, such as Take of a rule with a limit of Leases.
	ErrUnsupported = errors.New("floodgate: not supported")

	// ErrDegraded is wrapped by the error of Block, Grant, Reset or ResetAll if the store has done
	// it without the shared counters: it is in force in this process only, and until the store
	// answers again. See Decision.Degraded.
	ErrDegraded = errors.New("floodgate: done in this process only")

	// ErrClosed is wrapped by the error of a store that has been closed.
	ErrClosed = errors.New("floodgate: store is closed")
)

// BadRequestError is an [ErrBadRequest] with a text for the client. A KeyFunc or
// a hook returns a pointer to it; the error may be wrapped.
type BadRequestError struct {
	// Detail is what is wrong with the request. [DefaultHooks] sends it to
	// the client in place of a general sentence. It must be made of
	// configuration only, such as the name of a field, and never of what the
	// client has sent. It may contain any characters.
	Detail string
}

// Error returns the text of ErrBadRequest, followed by Detail.
func (e *BadRequestError) Error() string { return ErrBadRequest.Error() + ": " + e.Detail }

// Unwrap returns [ErrBadRequest].
func (e *BadRequestError) Unwrap() error { return ErrBadRequest }
