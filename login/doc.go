// Package login limits the attempts on a login form, so that an attacker cannot guess passwords,
// and the owner of an account gets in while strangers are denied. It is for handlers that check a
// username and a password. For other routes, use a core.Limiter or package policy.
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
//	account          100 failures in any hour, from all strangers together
//	                 (NIST SP 800-63B-4, section 3.2.2; OWASP ASVS 5, 6.3.1);
//	                 from 50 on the account is suspicious: see Config.OnSuspicion
//	device cookie    5 failures an hour, in place of the two limits above
//	trusted clients  50 failures in any hour, of all device cookies and known
//	of an account    addresses of the account together
//
// The guard charges an attempt before the handler runs, and refunds it if it has not failed: see
// [Config].Success and Failure. Concurrent guesses therefore gain nothing. The hit of the address
// is never refunded. A canceled request is a failure. Mount http.TimeoutHandler outside the guard:
// inside, it answers 503, which is not a failure, while the handler may still check the password.
//
// If an attacker guesses every second, this many guesses reach the handler in a day (measured by
// TestADayOfGuessing):
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
//	10 minutes, also with Basic authentication          720 (5 after each login)
//
// # Trusted clients
//
// A browser with a device cookie ([Guard.DeviceCookie]) and an address that has logged in to
// the account in the last days are trusted. Strangers who use up the account's quota do not
// lock them out. The guard reads first whether a client is trusted, then its limits make one
// decision. Once the quota of the cookie or of the account's trusted clients is used up, the
// client is a stranger. [Guard.Forget] ends the trust in all clients of an account.
//
// # Requests that are denied with 400
//
// The guard denies a request if a handler could read another username than the guard. It is
// charged to its address. The response (RFC 9457) names the field and the fault.
//
//   - The query has the field, in any spelling and with any method. The body has it twice:
//     username[], userna[]me, form.username and UserName are username.
//   - The body is neither a form nor a JSON object, has no Content-Type, is malformed, compressed or
//     longer than 64 KiB, has more than 1,000 fields, or could be read as another type by a
//     handler that ignores the Content-Type. The client does not send the whole body.
//   - The field has no single value: it is a file, an array, an object, a number that decoders
//     round, or text that frameworks cut or decode differently.
//   - The username is missing or empty, longer than 1 KiB or not valid UTF-8, or has control
//     characters, invisible characters, or spaces other than the plain one inside. The guard
//     removes white space around it.
//   - Two of Config.Sources find different usernames. The header Authorization is given twice
//     or cannot be read. A key function returns an error that wraps core.ErrBadRequest.
//   - A middleware before the guard has read the body. Mount the guard first.
//
// The handler should read the username with a call that reads the body only, such as
// r.PostFormValue, c.PostForm or c.BodyParser. A call that decodes a binary format whatever
// the Content-Type is, such as Gin's binding.ProtoBuf, is not safe behind the guard.
//
// # What responses and events reveal
//
// Nothing depends on whether an account exists. A denied response has the time to wait, and
// not the name of the limit. Events have no username and no address, unless Config.Identify
// is set. An observer gets them only if it asks for keys. The names of counters in a shared
// store have hashes, not text.
//
// # When the store fails
//
// The guard puts a shared store behind package resilient. While the store does not answer,
// the guard counts in this process, or denies every attempt with 503: see Config.Resilience.
// It never allows attempts without counting them. Meanwhile it trusts no known address. It
// trusts device cookies, whose signatures need no store, so that the owner gets in; a Forget
// has no effect on them until the store answers again.
package login
