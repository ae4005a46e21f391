// Package joining lets callers who want to send something at about the same time
// send it together: in one exchange with a server, instead of one each.
//
// A [Line] has a few exchanges under way at a time. A member that comes when fewer
// are under way is sent at once: there is no delay in which company is awaited. One
// that comes when as many are under way waits, and goes with the next exchange, in
// the order in which they came. How many are under way follows from the time that one
// takes: two keep a server busy that answers in 100 µs; if an answer takes 1 ms, ten
// make sure that the next exchange leaves soon.
//
// The package knows nothing of what is sent, of deadlines or of errors. A member
// that nobody wants to be sent any more is left out: see [Config.Gone].
package joining
