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
// http.TimeoutHandler inside the guard answers 503 while the handler may still
// judge the password, so that such guesses do not count: put it outside the guard.
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
//	net/http  safe: r.PostFormValue; r.PostForm after r.ParseForm; json.Decoder
//	          not:  r.FormValue, r.Form, r.URL.Query
//	Gin       safe: c.PostForm, c.ShouldBindJSON,
//	                c.ShouldBindWith(&f, binding.FormPost) or binding.FormMultipart
//	          not:  c.ShouldBind, c.Bind, c.Query, c.Request.FormValue
//	Echo      safe: c.Request().PostFormValue; json.Decoder
//	          not:  c.FormValue, c.FormParams, c.QueryParam, c.Bind, BindBody
//	Fiber     safe: c.BodyParser
//	          not:  c.FormValue, c.Query, c.QueryParser
//
// The other calls also read the URL's query, and some prefer it: an attacker
// would write a new name into the body of each guess, and the victim's name into
// the query. The guard refuses these requests (see below), so that the other calls
// are safe behind it too. A handler that keeps to the first calls stays safe if
// the guard is left out or configured for another field.
//
// One kind of call is not safe behind the guard: one that decodes a binary format
// whatever the type of the body is, such as c.ShouldBindWith(&m, binding.ProtoBuf)
// in Gin. A text can be a protobuf message, too. c.ShouldBind, which looks at the
// type, is safe.
//
// # What is refused with 400
//
// The guard refuses a request if a handler could read another username than the
// guard, or if there is none to count. The request reaches no handler and counts
// for the address. These are all reasons:
//
//   - The query has the field, in any spelling, with any method, with or without
//     a body. Many calls prefer the query to the body.
//   - The body has the field twice: frameworks take the first, the last or any.
//     Letter case does not matter, and brackets and dots are the same:
//     username[], userna[]me and UserName are username. So is a path that ends
//     with the name, such as form.username, because binders fill embedded structs.
//   - The body has another type than a form or a JSON object, or none: XML, YAML,
//     TOML, MessagePack, protobuf, text. The guard cannot read it, and a binder
//     can.
//   - The body cannot be read as its type says: it is compressed, malformed, longer
//     than 64 KiB, has more than 1,000 fields, or is a multipart form without an
//     end or with a boundary that frameworks read differently.
//   - The body could be read as another type by a handler that does not look at
//     the type: a form that begins as a JSON object; a form with a line break, a
//     tag, a colon with a space behind, a brace with a colon behind or quotes
//     around a value, which are not escaped; a type that only begins as a form's; a
//     multipart form with text before its first part or with a boundary that means
//     something in YAML or TOML; XML with text or attributes in a multipart form or
//     in JSON, such as the password <a>b</a>; another field of a form whose value
//     is a JSON object with the username's name in it.
//   - The field has no single value: it is a file, an array, an object, a number
//     outside of -2^53 to 2^53 or with a fraction or an exponent, which decoders
//     round, cut or write differently, a string of JSON that is not valid UTF-8, or
//     has a malformed escape or a semicolon, at which frameworks cut it differently.
//   - The username is missing or empty (see Config.AllowUnnamed), longer than 1
//     KiB, not valid UTF-8, or has control characters, invisible characters or
//     spaces other than the plain one inside. Handlers and databases drop some of
//     these. White space around the username is removed.
//   - Two of Config.Sources name two usernames, or the header Authorization is
//     given twice or cannot be read (see BasicUser).
//   - A middleware before the guard has read the body or parsed the form. The
//     guard would read nothing, and the handler may have the username from there.
//     Mount the guard first. The log says this once.
//   - The client does not send the whole body. In Fiber also: a streamed body is
//     longer than BodyLimit, or a part of a multipart form has the form's boundary
//     in it.
//   - Config.ClientIP or one of Config.Sources returns an error that wraps
//     core.ErrBadRequest.
//
// The response is a problem document (RFC 9457) that names the field and what is
// wrong with it, and never its value.
//
// # Trusted clients
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
// Nothing depends on whether an account exists: unknown, known and locked accounts
// are counted and answered in the same way. A denied response has the time to wait,
// and not the name of the limit. Events and the names of counters have no username
// and no address; Config.Identify puts both into events.
//
// # When the store fails
//
// A shared store is put behind package resilient: while it does not answer,
// this process decides by what it has let through itself. The guard is never
// open. No device cookie and no known address is trusted meanwhile, because
// another process may have forgotten it.
package login
