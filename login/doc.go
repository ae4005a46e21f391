// Package login protects a login form: its Guard is what every adapter's
// Middleware takes.
//
//	guard, err := login.NewGuard(login.Config{Field: "username", Store: store})
//	mux.Handle("POST /login", httplimit.Middleware(guard)(loginHandler))
//
// # What it limits
//
//	address          20 attempts a minute, whatever becomes of them
//	address and      5 failures in 15 minutes, then a wait of 30 seconds that
//	account          doubles each time, up to an hour (core.Lockout)
//	account          100 failures in any hour, from all addresses together
//	                 (NIST SP 800-63B-4, section 3.2.2; OWASP ASVS 5, 6.3.1);
//	                 from 50 on the account is suspicious: see OnSuspicion
//	trusted clients  50 failures in any hour, of all device cookies and known
//	of an account    addresses of the account together
//
// An attempt is charged before the handler runs and given back when it has not
// failed, so that a burst of guesses gets no further than guesses one by one. A
// status below 400 is a success: it forgets the failures of that address for
// that account, and nothing of the address's own. A 5xx response counts as
// neither success nor failure. A panic is a failure. So is a request whose
// client goes away, or whose context ends, before the handler has begun a
// response ([core.Outcome.Canceled]), whatever the handler writes after that.
//
// So many guesses of a day reach the handler, of an attacker who guesses every
// second (TestADayOfGuessing):
//
//	one address, one account                            150
//	the same, logging in to its own account in between  150
//	the same, giving up each fifth request              150
//	one address, 1000 accounts                       28,800 (20 a minute)
//	1000 addresses, one account                       2,300 (at most 100 an hour)
//	1000 addresses with a stolen cookie each, or
//	known for the account                             3,450 (at most 150 an hour)
//	one address, one stolen cookie                      270
//	the same, after Forget                              150
//
// # How the handler reads the username
//
// The guard counts an attempt for the username that it reads in the body. The
// handler should read the username by a call that reads the body only:
//
//	net/http  r.PostFormValue, or r.PostForm after r.ParseForm;
//	          not r.FormValue or r.Form
//	Gin       c.PostForm, c.ShouldBindWith(&f, binding.FormPost) or c.ShouldBindJSON;
//	          not c.ShouldBind, c.Query or c.Request.FormValue
//	Echo      c.Request().PostFormValue;
//	          not c.FormValue, c.FormParams or c.Bind
//	Fiber     c.BodyParser;
//	          not c.FormValue, c.Query or c.QueryParser
//
// The other calls also read the URL's query, and some prefer it: an attacker
// would write a new name into the body of each guess, and the victim's name into
// the query. The frameworks also differ in what they take for the name of a
// field. So the guard refuses a request with 400, which reaches no handler and
// counts for the address, if any handler could read another username than the
// guard:
//
//   - The query has the field, in any spelling, with any method, with or without
//     a body.
//   - The body has the field twice. Letter case does not matter, and brackets
//     and dots are the same: username[], userna[]me and UserName are username.
//   - The body cannot be read: it is no form and no JSON object, has no type, is
//     compressed, malformed or longer than 64 KiB, has more than 1,000 fields, or
//     is a form that begins as JSON does. The field in it is a file, an array or
//     an object.
//   - The username is missing, is longer than 1 KiB, is not valid UTF-8, or has
//     control characters, invisible characters or spaces other than the plain
//     one inside. White space around it is removed.
//
// The response is a problem document (RFC 9457) that names the field and what is
// wrong with it, and never its value.
//
// # Who is not locked out
//
// Somebody else's guesses do not keep the owner of an account out. A browser
// with a device cookie (OWASP, "Slow Down Online Guessing Attacks with Device
// Cookies"), which the handler sets after a success, has a small quota of
// failures of its own in place of the two on the account; it is bound to the
// account, expires, and is worth nothing once its quota is used up. Without
// cookies, an address that has logged in to the account in the last days is not
// subject to the account's limit, only to its own.
//
// These are the account's trusted clients. All of them together have a limit,
// too: above it they count as strangers, so that many stolen cookies do not add
// up. [Guard.Forget] ends the trust in all of them, on every instance. Call it
// when a password has been changed.
//
// # What it gives away
//
// Nothing depends on whether an account exists: unknown, known and locked ones
// are counted and answered alike. Refusals say how long to wait and not which
// limit it is. Neither events nor stored names have usernames or addresses in
// them, unless Config.Identify asks for it.
//
// # When the store fails
//
// A shared store is put behind package resilient: while it does not answer,
// this process decides by what it has let through itself. The guard is never
// open. No device cookie and no known address is trusted meanwhile, because
// another process may have forgotten it.
package login
