// Package site is a small web site with an API and a login form, both limited.
// The programs beside it serve it with one framework each; what they have in
// common stands here: the flags, the limits, the audit log and what the
// handlers do.
package site

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// Page is the HTML page with the form.
//
//go:embed page.html
var Page []byte

// Site is the limits of the site's routes.
type Site struct {
	API   *core.Limiter // GET /api
	Login *login.Guard  // POST /login
	log   *slog.Logger
	close func() error
}

// New returns the site's limits, counted in the store that the options name.
// Denied requests are written to log. clock is the in-process store's, nil for
// the real time.
func New(o Options, log *slog.Logger, clock func() time.Time) (*Site, error) {
	ip, err := keyfuncs.NewClientIP(keyfuncs.Behind("X-Forwarded-For", strings.Split(o.TrustedProxies, ",")...))
	if err != nil {
		return nil, fmt.Errorf("-trusted-proxies: %w", err)
	}
	config, err := o.loginConfig()
	if err != nil {
		return nil, err
	}
	open, err := openStores(o, clock)
	if err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	api, err := core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "ip", Key: ip, Limits: []core.Limit{open.limit}}},
		Store: open.api,
		Hooks: audit{log: log},
	})
	if err != nil {
		return nil, errors.Join(err, open.close())
	}
	config.Store, config.ClientIP, config.Log, config.Clock, config.OnEvent = open.login, ip, log, clock, auditLogin(log)
	guard, err := login.NewGuard(config)
	if err != nil {
		return nil, errors.Join(err, open.close())
	}
	return &Site{API: api, Login: guard, log: log, close: func() error { return errors.Join(guard.Close(), open.close()) }}, nil
}

// Close closes the guard and the store.
func (s *Site) Close() error { return s.close() }

// DeviceCookie returns the cookie for the browser of a user who has logged in.
// It is nil if the store does not answer: the user is let in without one.
func (s *Site) DeviceCookie(ctx context.Context, username string) *http.Cookie {
	cookie, err := s.Login.DeviceCookie(ctx, username)
	if err != nil {
		s.log.WarnContext(ctx, "no device cookie", "error", err)
		return nil
	}
	return cookie
}

// PasswordRight tells whether a user may log in. Everybody's password is ok.
func PasswordRight(_, password string) bool { return password == "ok" }

// audit writes a line for each denied request. The line names the counter by
// a hash: neither the address nor the username stands in it, though who has the
// log can try addresses until one fits.
type audit struct {
	core.DefaultHooks
	log *slog.Logger
}

// OnDisallowed implements core.Hooks.
func (a audit) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	a.log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelWarn, "request denied",
		slog.String("route", r.Route()),
		slog.String("decision", d.String()),
		slog.String("counter", d.StoredKey()),
	)
	return a.DefaultHooks.OnDisallowed(r, d)
}

// auditLogin writes a line for each attempt to log in that was denied. The
// account and the address stand in it as keyed hashes.
func auditLogin(log *slog.Logger) func(login.Event) {
	return func(e login.Event) {
		if e.Kind == login.EventDenied {
			log.Warn("login denied", "rule", e.Rule, "retry_after", e.RetryAfter, "account", e.Account, "address", e.Address)
		}
	}
}
