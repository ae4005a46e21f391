// Package joining lets callers who want to send something at about the same time
// send it together: in one exchange with a server, instead of one each.
//
// A [Line] has a few exchanges under way at a time. What comes meanwhile waits, in
// the order in which it came, and goes with the next exchange. Nobody waits if
// fewer exchanges are under way than the line permits: there is no delay in which
// company is awaited. How many exchanges are permitted follows from the time that
// one takes: two are enough to keep a server busy that answers in 100 µs; if the
// answer takes a millisecond, that many more are permitted that the next exchange
// leaves soon.
//
// The package knows nothing of what is sent, of deadlines or of errors. A member
// that nobody wants to be sent any more is left out: see [Config.Gone].
package joining
