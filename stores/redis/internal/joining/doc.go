// Package joining lets callers who want to send something at about the same time
// send it together: in one exchange with a server, instead of one each.
//
// A [Line] limits how many exchanges are under way. Below the limit, a member is sent
// at once: it does not wait for others to come. At the limit, members wait, and go
// together with the next exchange, in the order in which they came. The limit follows
// from the time that an exchange takes: 2 for a server that answers in 100 µs, 10 for
// one that answers in 1 ms, and never more than 12.
//
// The package knows nothing of what is sent, of deadlines or of errors. A member
// that nobody wants to be sent any more is left out: see [Config.Gone].
package joining
