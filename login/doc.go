// Package login limits the attempts on a login form, so that an attacker cannot
// guess passwords. It is for handlers that check a username and a password. For
// other routes, use a core.Limiter or package policy.
//
// [NewGuard] returns a [Guard]. Pass it to the Middleware of an adapter:
//
//	guard, err := login.NewGuard(login.Config{Field: "username", Store: store})
//	mux.Handle("POST /login", httplimit.Middleware(guard)(loginHandler))
//
// # Limits
//
//	address          20 attempts a minute, with any result
//	address and      5 failures in 15 minutes, then a wait of 30 seconds that
//	account          doubles each time, up to an hour (core.Lockout)
//	account          100 failures in any hour, from all addresses together
//	                 (NIST SP 800-63B-4, section 3.2.2; OWASP ASVS 5, 6.3.1);
//	                 from 50 on the account is suspicious: see OnSuspicion
//	device cookie    5 failures an hour, in place of the two limits above
//	trusted clients  50 failures in any hour, of all device cookies and known
//	of an account    addresses of the account together
//
// The guard charges an attempt before the handler runs, and refunds it if it has
// not failed. Guesses that are sent at the same time therefore get no further than
// guesses that are sent one after another. An attempt stays charged to its address
// in any case.
//
//   - A status below 400 is a success, unless Config.Success differs. A success
//     resets the failures of the address for the account, or of the device cookie.
//     If the method is not in Config.Methods, it counts as neither success nor
//     failure.
//   - A 4xx response is a failure, unless Config.Failure differs. With Basic
//     authentication only 401 and 407 are.
//   - A panic is a failure. A 5xx response counts as neither success nor failure.
//   - A request whose client closes the connection, or whose context ends, before
//     the handler has begun a response ([core.Outcome.Canceled]) is a failure. What
//     the handler writes after that does not matter.
//
// Do not mount http.TimeoutHandler inside the guard: it answers 503 while the
// handler may still check the password, and an attempt that is answered with 503
// is not a failure. Mount it outside the guard.
//
// If an attacker guesses every second, so many guesses reach the handler in a day
// (TestADayOfGuessing measures them):
//
//	one address, one account                            150
//	the same, logging in to its own account in between  150
//	the same, giving up each fifth request              150
//	the same, asking for the form with GET and a body   150
//	one address, 1000 accounts                       28,800 (20 a minute)
//	1000 addresses, one account                       2,300 (at most 100 an hour)
//	1000 addresses with a stolen cookie each, or
//	known for the account                             3,450 (at most 150 an hour)
//	one address, one stolen cookie                      270
//	the same, after Forget                              150
//	Basic authentication, 30 requests at once           150
//	the address of the owner, who logs in every
//	10 minutes                                          720 (5 after each login)
//	the same, with Basic authentication                1,440 (10 after each login)
//
// # Basic authentication
//
// With [BasicUser], each request has the password, and clients send several requests at
// once. The guard cannot know whether a request that is with the handler has the right
// password. So:
//
//   - The guard lets 5 requests of an address and account reach the handlers at once (the
//     quota of Config.Failures). It lets 5 more through if one has succeeded in this process
//     within the last minute, and none has failed since.
//   - Further requests wait until one of those in this process has its response, for 10
//     seconds at most. Then they are denied with 429.
//   - So an attacker who sends wrong passwords at once gets 5 guesses, or 10 if the owner
//     uses the same address. Each further process allows 5 more in that case.
//   - An event stream holds one of the 5 until it ends. If clients need more, set
//     Config.Failures to a larger quota.
//
// # How the handler reads the username
//
// The guard counts an attempt for the username that it reads in the body. The
// handler should read the username with a call that reads the body only:
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
// The calls marked "not" also read the URL's query, and some prefer the query to
// the body. An attacker could write the victim's name into the query and a new name
// into the body of each guess. The guard denies such requests (see below), so that
// these calls are safe behind it too. A handler that uses only the calls marked
// "safe" stays safe if the guard is left out or configured for another field.
//
// One kind of call is not safe behind the guard: a call that decodes a binary
// format whatever the Content-Type is, such as c.ShouldBindWith(&m,
// binding.ProtoBuf) in Gin. Some texts are valid protobuf messages. c.ShouldBind
// is safe, because it reads the Content-Type.
//
// # Requests that are denied with 400
//
// The guard denies a request if a handler could read another username than the
// guard, or if the request has no username. The request does not reach the handler.
// It is charged to the address. These are all reasons:
//
//   - The query has the field, in any spelling, with any method, with or without
//     a body. Many calls prefer the query to the body.
//   - The body has the field twice. Frameworks take the first, the last or any.
//     Letter case does not matter, and brackets and dots are equal: username[],
//     userna[]me and UserName are username. A path that ends with the name, such as
//     form.username, is the field too, because binders fill embedded structs.
//   - The body is neither a form nor a JSON object, or has no Content-Type: XML,
//     YAML, TOML, MessagePack, protobuf, text. The guard cannot read it, and a
//     binder can.
//   - The body cannot be read as its Content-Type says: it is compressed or
//     malformed, is longer than 64 KiB, has more than 1,000 fields, or is a
//     multipart form without an end or with a boundary that frameworks read
//     differently.
//   - A handler that ignores the Content-Type could read the body as another type:
//     a form that begins as a JSON object does; a form with an unescaped line break,
//     tag, colon before a space, brace before a colon, or quotes around a value; a
//     Content-Type that only begins as a form's does; a multipart form with text
//     before its first part, or with a boundary that means something in YAML or
//     TOML; XML with text or attributes in a multipart form or in JSON, such as the
//     password <a>b</a>; another field of a form whose value is a JSON object that
//     has the username's name as a member; &username= inside of JSON or of a
//     multipart form.
//   - The field has no single value. It is a file, an array or an object; a number of
//     2^53 or more, of -2^53 or less, or with a point or an exponent, which decoders
//     round, cut or write differently; a JSON string that is not valid UTF-8; or it
//     has a malformed escape or a semicolon, at which frameworks cut it differently.
//   - The username is missing or empty (see Config.AllowUnnamed), longer than 1
//     KiB or not valid UTF-8, or has control characters, invisible characters, or
//     spaces other than the plain one inside. Handlers and databases drop some of
//     these. The guard removes white space around the username.
//   - Two of Config.Sources find two different usernames, or the header
//     Authorization is given twice or cannot be read (see BasicUser).
//   - A middleware before the guard has read the body or parsed the form. Mount the
//     guard first. The log has one line about it.
//   - The client does not send the whole body. In Fiber also: a streamed body is
//     longer than BodyLimit, or a part of a multipart form contains the form's
//     boundary.
//   - Config.ClientIP or one of Config.Sources returns an error that wraps
//     core.ErrBadRequest.
//
// The response is a problem document (RFC 9457). It has the field's name and the
// fault, and never the field's value.
//
// # Trusted clients
//
// An attacker who uses up an account's quota must not lock out the owner. Two kinds
// of clients are therefore trusted.
//
//   - A browser with a device cookie (OWASP, "Slow Down Online Guessing Attacks with
//     Device Cookies"). The handler sets the cookie after a success: see
//     [Guard.DeviceCookie]. The limit of the cookie replaces the two limits on the
//     account. The cookie is valid for one account and expires. Once its quota is
//     used up, the browser counts as a stranger.
//   - An address that has logged in to the account in the last days. It is not
//     subject to the limit of the account, only to that of address and account.
//     [Guard.Trust] tells the guard of a login elsewhere, such as one with a passkey.
//
// All trusted clients of an account share a further limit, Config.TrustedFailures.
// Above it they count as strangers, so that many stolen cookies do not add up.
// [Guard.Forget] ends the trust in all of them, on every instance. Call it when a
// password has been changed.
//
// # What responses and events reveal
//
// Nothing depends on whether an account exists: the guard counts and answers
// unknown, known and locked accounts in the same way. A denied response has the
// time to wait, and not the name of the limit. Events have no username and no
// address, unless Config.Identify is set. The names of counters in a shared store
// have a hash of the username and the address, and not their text.
//
// # When the store fails
//
// The guard puts a shared store behind package resilient. While the store does not
// answer, the guard counts in this process, or denies every attempt with 503: see
// Config.Resilience. It never allows attempts without counting them. Meanwhile it
// trusts no known address. It trusts device cookies, whose signatures it can verify
// without the store, and counts their failures in this process, so that the owner gets
// in. A Forget has no effect on cookies until the store answers again.
package login
