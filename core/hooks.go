package core

// Hooks change what the limiter does. Embed [DefaultHooks], or another Hooks to wrap it, and
// replace what differs.
//
// Hooks may be called concurrently, and may call the limiter. Their panics are not recovered.
// KeyExtra and Cost may be called twice for a request: see [Limiter.Check]. Their errors mean what
// those of a [KeyFunc] mean.
type Hooks interface {
	// ShouldLimit runs first. If it returns false, the request is neither limited nor counted.
	ShouldLimit(r Request) bool
	// KeyExtra returns text that is added to every key of the request: requests with different
	// texts have separate counters.
	KeyExtra(r Request) (string, error)
	// Cost returns the hits that the request costs. 0 is allowed and counts nothing. A negative
	// cost is an error.
	Cost(r Request) (int64, error)
	// OnDisallowed returns the response to a denied request. It runs once for each. In a dry
	// run, its result is not used.
	OnDisallowed(r Request, d Decision) Denial
}

// DefaultHooks limits every request except CORS preflights, counts one hit, and denies with
// [DefaultHooks.OnDisallowed].
type DefaultHooks struct{}

// ShouldLimit returns false for a CORS preflight: OPTIONS with Access-Control-Request-Method.
func (DefaultHooks) ShouldLimit(r Request) bool {
	return r.Method() != "OPTIONS" || len(r.HeaderValues("Access-Control-Request-Method")) == 0
}

// KeyExtra returns "".
func (DefaultHooks) KeyExtra(Request) (string, error) { return "", nil }

// Cost returns 1.
func (DefaultHooks) Cost(Request) (int64, error) { return 1, nil }

// OnDisallowed returns the standard denial: the status of [Decision.Status], and problem details
// (RFC 9457). Over a limit, they have the problem type quota-exceeded of
// draft-ietf-httpapi-ratelimit-headers-10 and the names of the limits that deny. For a bad request,
// they have the Detail of its [BadRequestError], if any. Nothing else comes from an error or the
// client.
func (DefaultHooks) OnDisallowed(_ Request, d Decision) Denial { return d.denial() }
