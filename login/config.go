package login

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
	"github.com/floodgate-go/floodgate/internal/usernames"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// The default limits: see [Config].
var (
	DefaultAttempts = core.PerMinute(20)
	DefaultFailures = core.Limit{
		Quota: 5, Window: 15 * time.Minute, Algorithm: core.FixedWindow,
		Lockout: core.Lockout{First: 30 * time.Second, Factor: 2, Max: time.Hour, Decay: time.Hour},
	}
	DefaultAccountFailures = core.Limit{Quota: 100, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: 5 * time.Minute}
	DefaultDeviceFailures  = core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow}
	DefaultTrustedFailures = core.Limit{Quota: 50, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: 5 * time.Minute}
)

const (
	minSecret         = 32 // bytes
	defaultCookieName = "__Host-device"
)

// Config configures [NewGuard]. Field or Sources is required. Its functions may be called
// concurrently.
type Config struct {
	// Name is part of the names of the counters; "" means "login". Two guards with the same name
	// and the same store share their counters.
	Name string
	// Field is the name of the form field, or of the member of a JSON object, that has the
	// username, such as "username" or "user[name]". The guard reads it as keyfuncs.PostField does
	// with the option keyfuncs.Strict.
	Field string
	// Sources are more key functions that find the username, such as BasicUser() or
	// keyfuncs.PostField("user", keyfuncs.Strict(), keyfuncs.JSONPath("user", "name")). The guard
	// denies a request with 400 if Field and Sources find no username, or different ones. For a
	// form that has no username, such as that of a PIN, set keyfuncs.Static("pin") alone.
	Sources []core.KeyFunc
	// Normalize maps all spellings that the application takes for one account to one username; nil
	// means [Normalize]. It gets names without white space at the ends. Names of requests have no
	// invisible characters. If the database ignores accents, or an account has two names, nil is
	// not enough: each name that leads to the account would have failures of its own.
	Normalize func(username string) string
	// ClientIP is the key function for the client's address; nil means keyfuncs.ClientIP(), the
	// address of the connection's peer. Attempts without an address share one. For Trust, Status
	// and UnblockAddress, the request has the address as its peer, and no headers.
	ClientIP core.KeyFunc
	// Methods are the methods that log in, in capitals; none means POST. GET includes HEAD. The
	// guard checks a request with another method too if it has a body, if its query has Field, or
	// if one of Sources finds a username in it. Such a request is never a success, so that the page
	// of the login form does not reset failures.
	Methods []string

	// Store holds the counters; nil: this process. The guard puts a shared store behind
	// resilient.New(Store, Resilience), unless core.Guarantees.KeepsDeadline and FailsFast are
	// true. A store that fails open (core.Guarantees.OnFailure) or is not exact
	// (core.Guarantees.Exact) is an error: attackers would get more guesses.
	Store core.Store
	// Resilience configures what the guard does while a shared Store does not answer.
	// resilient.FailOpen is an error.
	Resilience resilient.Config

	// The limits; the zero Limit means the default: Attempts of each address, Failures of each
	// address and account, AccountFailures of each account, DeviceFailures of each device cookie,
	// and TrustedFailures of all trusted clients of an account together. A client is a stranger
	// once either of the last two is used up.
	Attempts, Failures, AccountFailures, DeviceFailures, TrustedFailures core.Limit

	// Success reports whether an attempt has succeeded; nil: a status below 400. A step of a login
	// that checks no password must not be a success: give it a route without the guard. If the
	// handler answers a wrong password with a redirect, use [RedirectFails].
	Success func(o core.Outcome) bool
	// Failure reports whether an attempt has failed. It must be true for every response to a wrong
	// password, or nobody is limited. nil: every status below 500 that is not a success; if only
	// [BasicUser] has found the username, only 401 and 407. An attempt that is both is a failure;
	// one that is neither is refunded. A panic and a canceled request always are failures; a status
	// of 500 or more and a protocol upgrade are neither: Success and Failure are not called for
	// them.
	Failure func(o core.Outcome) bool

	// SuspiciousAfter is the number of failures in the window of AccountFailures at which an
	// account becomes suspicious. 0 means half of the quota, or of the burst, rounded up.
	SuspiciousAfter int64
	// OnSuspicion is called before the handler, for each attempt of a stranger on a suspicious
	// account that the limits allow. If it returns a denial, such as a page with a captcha, the
	// guard sends that, and charges the attempt to its address only. A status below 200 or above
	// 599 becomes 429. The next request has the answer to the captcha: OnSuspicion must check it,
	// and return nil if it is right. A panic counts as a failure.
	OnSuspicion func(r core.Request, s Suspicion) *core.Denial

	// Secrets sign device cookies; none: no device cookies. The guard signs with the first secret
	// and accepts all, so that secrets can be replaced one by one. Each has 32 random bytes or
	// more, which must not change afterwards.
	Secrets [][]byte
	// CookieName is the name of device cookies; "" means __Host-device. Browsers accept a cookie
	// with the prefix __Host- only over TLS and from the host itself, not from another host of the
	// domain (RFC 6265bis, section 4.1.3.2).
	CookieName string
	// CookieFor is how long device cookies are valid: 1s to 350 days. 0 means 90 days. With a store
	// that keeps nothing for longer than 30 days, such as memcached, they are valid for 27 days at
	// most, and so is KnownFor.
	CookieFor time.Duration
	// InsecureCookie lets browsers send device cookies without TLS, for development. CookieName
	// must then not have the prefix __Host- or __Secure-.
	InsecureCookie bool
	// KnownFor is how long an address that has logged in to an account is not subject to
	// AccountFailures: 1s to 350 days. 0 means 14 days.
	KnownFor time.Duration

	// OnDisallowed returns the response to a denied request. denial is what the client gets without
	// it: a problem document with 429, 400 or 503, without the name of the limit. nil: denial.
	OnDisallowed func(r core.Request, d core.Decision, denial core.Denial) core.Denial
	// OnEvent gets events for an audit log; nil: none. Each [EventKind] says when it happens. There
	// is no event for an attempt that the guard answers with 400 or 503, or the handler with a 5xx.
	// OnEvent runs in the goroutine of the request.
	OnEvent func(Event)
	// Identify puts usernames and addresses into events in place of hashes.
	Identify bool
	// Observer sees every decision of the guard's limits, and events: see core.ObserverFuncs. Each
	// attempt is one decision. Its key has the username and the address, for an observer that asks
	// for keys. nil: none.
	Observer core.Observer
	// Log gets the lines of core.Config.Log and resilient.Config.Log, one for each client whose
	// address could not be remembered, and one if the first 100 attempts have all succeeded; nil:
	// slog.Default().
	Log *slog.Logger
	// Clock returns the time for the counters in this process and for device cookies; nil: the real
	// time.
	Clock func() time.Time
}

// check returns all errors of the fields that NewGuard itself reads. core.New checks the limits.
func (c *Config) check() error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, fmt.Errorf("%w: %s: %v: %s", core.ErrConfig, field, value, why))
	}
	if c.Field == "" && len(c.Sources) == 0 {
		bad("Field", `""`, "must be the name of the form field that has the username, such as \"username\", unless Sources is set")
	}
	for i, s := range c.Sources {
		if s == nil {
			bad(fmt.Sprintf("Sources[%d]", i), nil, "must be a key function, such as login.BasicUser()")
		}
	}
	for i, s := range c.Secrets {
		if len(s) < minSecret {
			bad(fmt.Sprintf("Secrets[%d]", i), fmt.Sprintf("%d bytes", len(s)), fmt.Sprintf("must have %d random bytes or more", minSecret))
		}
	}
	length := func(field string, d time.Duration) {
		if d != 0 && (d < time.Second || d > maxTrust) {
			bad(field, d, "must be from 1s to 350 days, or 0 for the default")
		}
	}
	length("CookieFor", c.CookieFor)
	length("KnownFor", c.KnownFor)
	if c.SuspiciousAfter < 0 {
		bad("SuspiciousAfter", c.SuspiciousAfter, "must be 0 or more")
	}
	for i, m := range c.Methods {
		if m == "" || m != strings.ToUpper(m) {
			bad(fmt.Sprintf("Methods[%d]", i), strconv.Quote(m), "must be a method in capitals, such as POST")
		}
	}
	if c.Resilience.OnFailure == resilient.FailOpen {
		bad("Resilience.OnFailure", c.Resilience.OnFailure, "must be resilient.Local or resilient.FailClosed: a guard counts every attempt that it allows")
	}
	store := fmt.Sprintf("%T", c.Store)
	switch {
	case c.Store == nil:
	case nilcheck.IsNil(c.Store):
		bad("Store", store, "is nil")
	default:
		g := c.Store.Guarantees()
		if g.OnFailure == core.FailOpen {
			bad("Store", store, "may allow attempts without counting them while its server does not answer (core.Guarantees.OnFailure is FailOpen): use a store that decides locally or fails closed")
		}
		if !g.Exact {
			bad("Store", store, "is not exact (core.Guarantees.Exact): attackers would get more guesses through several instances: use another store")
		}
	}
	name := cmp.Or(c.CookieName, defaultCookieName)
	if err := (&http.Cookie{Name: name, Value: "x"}).Valid(); err != nil {
		bad("CookieName", strconv.Quote(name), "must be the name of a cookie (RFC 6265), such as __Host-device")
	}
	if c.InsecureCookie && (strings.HasPrefix(name, "__Host-") || strings.HasPrefix(name, "__Secure-")) {
		bad("CookieName", strconv.Quote(name), "must not begin with __Host- or __Secure- if InsecureCookie is set: browsers accept such a cookie over TLS only")
	}
	return errors.Join(errs...)
}

// openStore returns the store for the guard's counters, and a function that closes it if openStore
// has made it. The store is not shared, or it keeps a deadline and fails fast.
func (c *Config) openStore() (store core.Store, closeStore func() error, err error) {
	if c.Store == nil {
		m := core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Clock}))
		return m, m.Close, nil
	}
	if g := c.Store.Guarantees(); !g.Shared || g.KeepsDeadline && g.FailsFast {
		return c.Store, func() error { return nil }, nil // its owner closes it
	}
	if c.Resilience.Clock == nil {
		c.Resilience.Clock = c.Clock
	}
	c.Resilience.Log = cmp.Or(c.Resilience.Log, c.Log)
	r, err := resilient.New(c.Store, c.Resilience)
	if err != nil {
		return nil, nil, fmt.Errorf("field Resilience: %w", err)
	}
	return r, r.Close, nil
}

func (c *Config) now() time.Time {
	if c.Clock != nil {
		return c.Clock()
	}
	return time.Now()
}

// filled returns the configuration with the defaults in place of zero values.
func (c Config) filled() Config {
	c.Name = cmp.Or(c.Name, "login")
	c.Attempts = cmp.Or(c.Attempts, DefaultAttempts)
	c.Failures = cmp.Or(c.Failures, DefaultFailures)
	c.AccountFailures = cmp.Or(c.AccountFailures, DefaultAccountFailures)
	c.DeviceFailures = cmp.Or(c.DeviceFailures, DefaultDeviceFailures)
	c.TrustedFailures = cmp.Or(c.TrustedFailures, DefaultTrustedFailures)
	c.SuspiciousAfter = cmp.Or(c.SuspiciousAfter, (c.AccountFailures.Capacity()+1)/2)
	c.CookieName = cmp.Or(c.CookieName, defaultCookieName)
	c.CookieFor = cmp.Or(c.CookieFor, 90*day)
	c.KnownFor = cmp.Or(c.KnownFor, 14*day)
	c.Log = cmp.Or(c.Log, slog.Default())
	c.Methods, c.Sources, c.Secrets = slices.Clone(c.Methods), slices.Clone(c.Sources), slices.Clone(c.Secrets) // the caller may change its own
	if c.Field != "" {
		c.Sources = append([]core.KeyFunc{keyfuncs.PostField(c.Field, keyfuncs.Strict(), keyfuncs.Normalize(usernames.Plain))}, c.Sources...)
	}
	if normalize := c.Normalize; normalize == nil {
		c.Normalize = Normalize
	} else {
		c.Normalize = func(username string) string { return normalize(strings.TrimSpace(username)) }
	}
	if c.ClientIP == nil {
		c.ClientIP = keyfuncs.ClientIP()
	}
	if len(c.Methods) == 0 {
		c.Methods = []string{"POST"}
	}
	if slices.Contains(c.Methods, "GET") {
		c.Methods = append(c.Methods, "HEAD")
	}
	if c.Success == nil {
		c.Success = func(o core.Outcome) bool { return o.Status < 400 }
	}
	return c
}
