// Package login limits the attempts on a login form, so that an attacker cannot guess passwords,
// and the owner of an account gets in while strangers are denied.
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
//	                 (NIST SP 800-63B-4, section 3.2.2; OWASP ASVS 5, 6.3.1)
//	device cookie    5 failures an hour, in place of the two limits above
//	trusted clients  50 failures in any hour, of all device cookies and known
//	of an account    addresses of the account together
//
// The guard charges an attempt before the handler runs, and refunds it if it has not failed: see
// [Config].Success and Failure. The hit of the address is never refunded. A canceled request is a
// failure. Mount http.TimeoutHandler outside the guard. [Guard] says how many guesses reach the
// handler in a day.
//
// # Trusted clients
//
// A client is trusted if its browser has a device cookie ([Guard.DeviceCookie]), or if its address
// has logged in to the account in the last days. Strangers who use up the account's quota do not
// lock them out. [Guard.Forget] ends the trust in all clients of an account.
//
// # The username
//
// If a handler could read another username than the guard, the request is denied with 400, and
// charged to its address: see [keyfuncs.PostField] and [keyfuncs.Strict]. So is a request whose
// username is missing, longer than 1 KiB, not valid UTF-8, or has control or invisible characters.
// Read the username with a call that reads the body only, such as r.PostFormValue. A call that
// decodes a binary format whatever the Content-Type is, such as Gin's binding.ProtoBuf, is not safe.
//
// # What responses and events reveal
//
// Nothing depends on whether an account exists. A response does not name the limit. Events have no
// username and no address, unless Config.Identify is set. The names of counters are hashes.
//
// # When the store fails
//
// The guard then counts in this process, or denies every attempt with 503: see Config.Resilience.
// It trusts no known address. It trusts device cookies, also after a Forget, so that the owner gets in.
package login
