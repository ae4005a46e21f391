// Package keyfuncs says where the key of a rule comes from: the client's
// address, the user, a header, a cookie, a query value, the method, the route
// or a field of the body, alone or joined.
//
//	core.Rule{Name: "ip", Key: keyfuncs.ClientIP(), Limits: ...}
//	core.Rule{Name: "login", Key: keyfuncs.Join(keyfuncs.ClientIP(), keyfuncs.PostField("username")), Limits: ...}
//
// A request without the value has the empty key: all such requests share one
// quota, and none goes unlimited. OrSkip makes a rule apply only to requests that
// have the value; User and UserValue do so by themselves.
//
// There is no key function for the URL's path. Routers serve one resource
// under many paths (/login, /login/, /%6cogin), and a client that may choose
// among them may choose its counter. Route gives the pattern that the router
// has matched instead.
//
// Key functions keep no state and may be called concurrently.
package keyfuncs
