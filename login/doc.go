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
// open.
package login
