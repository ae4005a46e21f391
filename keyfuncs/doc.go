// Package keyfuncs has the key functions of rules ([core.KeyFunc]). The key is the
// client's address, the user, a header, a cookie, a query parameter, the method, the
// route or a field of the body. Join and FirstOf combine several of them.
//
//	core.Rule{Name: "ip", Key: keyfuncs.ClientIP(), Limits: ...}
//	core.Rule{Name: "login", Key: keyfuncs.Join(keyfuncs.ClientIP(), keyfuncs.PostField("username")), Limits: ...}
//
// If a request does not have the value, its key is empty. All requests with an empty
// key share one quota, so that no request is unlimited. OrSkip makes a rule apply only
// to requests that have the value. User and UserValue do so by themselves.
//
// There is no key function for the URL's path. Routers serve one resource under many
// paths (/login, /login/, /%6cogin), so that a client could choose its counter. Use
// Route: its key is the pattern that the router has matched.
//
// All key functions may be called concurrently.
package keyfuncs
