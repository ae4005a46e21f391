package login

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// The limits that a Config without them has.
var (
	// DefaultAttempts is the limit of each address.
	DefaultAttempts = core.PerMinute(20)
	// DefaultFailures is the limit of each address and account.
	DefaultFailures = core.Limit{
		Quota: 5, Window: 15 * time.Minute, Algorithm: core.FixedWindow,
		Lockout: core.Lockout{First: 30 * time.Second, Factor: 2, Max: time.Hour, Decay: time.Hour},
	}
	// DefaultAccountFailures is the limit of each account.
	DefaultAccountFailures = core.Limit{Quota: 100, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: 5 * time.Minute}
	// DefaultDeviceFailures is the limit of each device cookie.
	DefaultDeviceFailures = core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow}
	// DefaultTrustedFailures is the limit of all trusted clients of an account together.
	DefaultTrustedFailures = core.Limit{Quota: 50, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: 5 * time.Minute}
)

const (
	// DefaultName is the name of a guard's limiter.
	DefaultName = "login"
	// DefaultKnownFor is how long an address that has logged in is remembered.
	DefaultKnownFor = 14 * 24 * time.Hour
	// DefaultCookieName is the name of device cookies. Browsers keep cookies
	// of this prefix from being set by others (RFC 6265bis, section 4.1.3.2).
	DefaultCookieName = "__Host-device"
	// DefaultCookieFor is how long a device cookie is valid.
	DefaultCookieFor = 90 * 24 * time.Hour
	// MinSecret is the shortest secret, in bytes.
	MinSecret = 32
)

// Config configures [NewGuard]. Field or Sources is required.
type Config struct {
	// Name is part of the names of counters; "" means DefaultName. Two guards that
	// share a store need different names, unless they count together.
	Name string
	// Field is the name of the form field, or of the member of a JSON object,
	// that has the username, such as "username" or "user[name]". The guard
	// reads it as keyfuncs.PostField does with the option keyfuncs.Strict.
	Field string
	// Sources are further places of the username, such as
	// keyfuncs.PostField("email", keyfuncs.Strict()), keyfuncs.PostField("user",
	// keyfuncs.Strict(), keyfuncs.JSONPath("user", "name")) or BasicUser(). All
	// charge the same account; a request in which two differ is refused with 400.
	Sources []core.KeyFunc
	// AllowUnnamed lets requests without a username share the counters of one
	// nameless account: a form or a JSON object without Field or with an empty
	// one, or no body. Without AllowUnnamed they are refused with 400. A body that
	// the guard cannot read is refused in both cases, because the handler might
	// find a name in it.
	AllowUnnamed bool
	// Normalize maps the spellings of a username to one; nil means [Normalize].
	// It must do so for all spellings that the application takes for one
	// account. The guard calls it with names that keyfuncs.PlainName accepts,
	// trimmed; it refuses all others with 400.
	Normalize func(username string) string
	// ClientIP is the client's address; nil means keyfuncs.ClientIP(), the
	// connection's peer.
	ClientIP core.KeyFunc
	// Methods are the methods that log in; nil means POST. A request with
	// another method is limited too if it has a body, or has Field in its query.
	Methods []string

	// Store is where counters live; nil: in this process. The guard reads its
	// core.Traits. A shared store is put behind resilient.New(Store, Resilience),
	// unless it keeps a deadline and fails fast by itself, as a resilient.Store
	// does. A store that may open while what it depends on does not
	// answer (core.Traits.NeverOpens is false) is an error, whatever is around it.
	Store core.Store
	// Resilience says what happens while a shared Store does not answer.
	// resilient.ModeOpen is an error.
	Resilience resilient.Config
	// AllowEventual accepts a store that is not exact (core.Traits.Exact):
	// guesses through several instances then add up.
	AllowEventual bool

	// Attempts is the limit of each address; the zero Limit means
	// DefaultAttempts.
	Attempts core.Limit
	// Failures is the limit of each address and account; the zero Limit means
	// DefaultFailures.
	Failures core.Limit
	// AccountFailures is the limit of each account; the zero Limit means
	// DefaultAccountFailures.
	AccountFailures core.Limit
	// Success reports whether an attempt has succeeded. nil: it has if the status
	// is below 400. It is not asked about a status of 500 or more, a protocol
	// upgrade, a panic, or a client that went away before it was answered: none
	// of these is a success. A form that answers a wrong password with a
	// redirect to itself needs it: see [RedirectFails].
	Success func(o core.Outcome) bool

	// SuspiciousAfter is the number of failures in the window of AccountFailures
	// from which on an account is suspicious; 0 means half of the quota.
	SuspiciousAfter int64
	// OnSuspicion is called, before the handler, for each attempt on a suspicious
	// account that the limits allow. Its Verdict can delay or refuse the attempt.
	// nil: such attempts are treated as all others.
	OnSuspicion func(r core.Request, s Suspicion) Verdict

	// Secrets sign device cookies: the first signs, all are accepted, so that
	// they can be changed one by one. Each has MinSecret random bytes or more.
	// nil: no device cookies.
	Secrets [][]byte
	// DeviceFailures is the limit of each device cookie; the zero Limit means
	// DefaultDeviceFailures.
	DeviceFailures core.Limit
	// CookieName is the name of device cookies; "" means DefaultCookieName.
	CookieName string
	// CookieFor is how long they are valid: 1s to 350 days. 0 means
	// DefaultCookieFor. A store that keeps nothing for longer than 30 days, as
	// memcached, allows 27 days at most, and 0 then means 27 days.
	CookieFor time.Duration
	// InsecureCookie lets device cookies travel without TLS: for development.
	// CookieName must then be one without the prefix __Host- or __Secure-.
	InsecureCookie bool

	// KnownFor is how long an address that has logged in to an account is not
	// subject to its AccountFailures: 1s to 350 days; 27 days at most if CookieFor
	// is limited to that. 0 means DefaultKnownFor.
	KnownFor time.Duration
	// ForgetAddresses turns KnownFor off: no address is remembered.
	ForgetAddresses bool
	// TrustedFailures is the limit of all trusted clients of an account together:
	// of those with a device cookie, and of known addresses while the account
	// itself is over AccountFailures. Above it they count as strangers, so that
	// many stolen cookies do not add up. The zero Limit means
	// DefaultTrustedFailures.
	TrustedFailures core.Limit

	// OnDisallowed returns the response to a denied request; nil: 429, 400 or 503
	// without the name of the limit.
	OnDisallowed func(r core.Request, d core.Decision) core.Denial
	// Headers are the rate limit headers of responses; 0 means none: they tell
	// strangers how an account is doing.
	Headers core.Headers
	// OnEvent is called with the result of each attempt, but for those that are
	// answered with 400, for an audit log, by the
	// goroutine of the request and without a lock. It may be nil.
	OnEvent func(Event)
	// Identify puts usernames and addresses into events.
	Identify bool
	// Log gets a line for each failed operation that no request waits for; nil:
	// slog.Default().
	Log *slog.Logger
	// Clock tells the time of the counters in this process and of cookies;
	// nil: the real time.
	Clock func() time.Time
}

// check reports everything that is wrong with what NewGuard itself needs; what
// limits need is core.New's to say.
func (c *Config) check() error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, fmt.Errorf("%w: %s: %v: %s", core.ErrConfig, field, value, why))
	}
	if c.Field == "" && len(c.Sources) == 0 {
		bad("Field", `""`, "where is the username? Field or Sources is needed")
	}
	for i, s := range c.Sources {
		if s == nil {
			bad(fmt.Sprintf("Sources[%d]", i), nil, "must be a key function")
		}
	}
	for i, s := range c.Secrets {
		if len(s) < MinSecret {
			bad(fmt.Sprintf("Secrets[%d]", i), fmt.Sprintf("%d bytes", len(s)), fmt.Sprintf("must have %d or more", MinSecret))
		}
	}
	if c.Secrets != nil && len(c.Secrets) == 0 {
		bad("Secrets", "none", "must be nil, or have one at least")
	}
	length := func(field string, d time.Duration) {
		if d != 0 && (d < time.Second || d > maxTrust) {
			bad(field, d, "must be from 1s to 350 days")
		}
	}
	length("CookieFor", c.CookieFor)
	length("KnownFor", c.KnownFor)
	if c.KnownFor != 0 && c.ForgetAddresses {
		bad("KnownFor", c.KnownFor, "ForgetAddresses is set too")
	}
	if c.SuspiciousAfter < 0 {
		bad("SuspiciousAfter", c.SuspiciousAfter, "must be 0 or more")
	}
	for i, m := range c.Methods {
		if m == "" {
			bad(fmt.Sprintf("Methods[%d]", i), `""`, "must be a method")
		}
	}
	if c.Methods != nil && len(c.Methods) == 0 {
		bad("Methods", "none", "must be nil, or have one at least")
	}
	if c.Resilience.Meanwhile == resilient.ModeOpen {
		bad("Resilience.Meanwhile", c.Resilience.Meanwhile, "a login form is never open: choose InProcess or Closed")
	}
	if c.Store != nil {
		errs = append(errs, c.checkStore())
	}
	if err := c.checkCookie(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// filled returns the configuration with what its zero values stand for.
func (c Config) filled() Config {
	orLimit := func(l *core.Limit, standard core.Limit) {
		if *l == (core.Limit{}) {
			*l = standard
		}
	}
	orLimit(&c.Attempts, DefaultAttempts)
	orLimit(&c.Failures, DefaultFailures)
	orLimit(&c.AccountFailures, DefaultAccountFailures)
	orLimit(&c.DeviceFailures, DefaultDeviceFailures)
	orLimit(&c.TrustedFailures, DefaultTrustedFailures)
	if c.Name == "" {
		c.Name = DefaultName
	}
	if c.Field != "" {
		c.Sources = append([]core.KeyFunc{keyfuncs.PostField(c.Field, keyfuncs.Strict())}, c.Sources...)
	}
	if normalize := c.Normalize; normalize == nil {
		c.Normalize = Normalize
	} else {
		c.Normalize = func(username string) string { return normalize(strings.TrimSpace(username)) }
	}
	if c.ClientIP == nil {
		c.ClientIP = keyfuncs.ClientIP()
	}
	if c.Methods == nil {
		c.Methods = []string{"POST"}
	}
	if c.Success == nil {
		c.Success = func(o core.Outcome) bool { return o.Status < 400 }
	}
	if c.SuspiciousAfter == 0 {
		c.SuspiciousAfter = (c.AccountFailures.Quota + 1) / 2
	}
	if c.CookieName == "" {
		c.CookieName = DefaultCookieName
	}
	if c.CookieFor == 0 {
		c.CookieFor = DefaultCookieFor
	}
	if c.KnownFor == 0 {
		c.KnownFor = DefaultKnownFor
	}
	if c.Headers == 0 {
		c.Headers = core.HeadersOff
	}
	if c.OnDisallowed == nil {
		c.OnDisallowed = refuse
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}
