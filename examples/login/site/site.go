// Package site is a small web site with an API and a login form, both limited.
// The programs beside it serve it with one framework each; what they have in
// common stands here: the flags, the limits, the audit log and what the
// handlers do.
package site

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Page is the HTML page with the form.
//
//go:embed page.html
var Page []byte

// Options are what the flags set.
type Options struct {
	Addr           string // address to listen on
	Store          string // where counters live: a name or URL
	TrustedProxies string // addresses and prefixes, with commas between
}

// ParseFlags reads a program's arguments. The error is flag.ErrHelp where help
// was asked for, and has been written then, as all others have.
func ParseFlags(name string, args []string, output io.Writer) (Options, error) {
	var o Options
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&o.Addr, "addr", "127.0.0.1:8080", "address to listen on")
	flags.StringVar(&o.Store, "store", "memory", "where counters live: "+Stores)
	flags.StringVar(&o.TrustedProxies, "trusted-proxies", "127.0.0.2/32",
		"addresses and prefixes, with commas between, of proxies whose X-Forwarded-For is believed; empty: none")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(output, err)
		return o, err
	}
	return o, nil
}

// Site is the limits of the site's routes.
type Site struct {
	API   *core.Limiter // GET /api
	Login *core.Limiter // POST /login
	close func() error
}

// New returns the site's limits, counted in the store that the options name.
// Refused requests are written to log. clock is the in-process store's, nil for
// the real time.
func New(o Options, log *slog.Logger, clock func() time.Time) (*Site, error) {
	ip, err := clientIP(o.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("-trusted-proxies: %w", err)
	}
	store, closeStore, err := openStore(o.Store, log, clock)
	if err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	hooks := audit{log: log}
	api, err := core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "ip", Key: ip, Limits: []core.Limit{core.PerMinute(5)}}},
		Store: store,
		Hooks: hooks,
	})
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	// The handler sees a name where the limiter does, or not at all.
	username := keyfuncs.PostField("username", keyfuncs.RequireValue(), keyfuncs.Normalize(keyfuncs.TrimSpace), keyfuncs.Normalize(keyfuncs.FoldCase))
	login, err := core.New(core.Config{
		Name: "login",
		Rules: []core.Rule{
			{Name: "ip", Key: ip, Limits: []core.Limit{core.PerMinute(20)}},
			{Name: "ip-user", Key: keyfuncs.Join(ip, username), Limits: []core.Limit{core.PerMinute(5)}, Counts: failed, Clears: succeeded},
			{Name: "user", Key: username, Limits: []core.Limit{core.PerHour(50)}, Counts: failed},
		},
		Store: store,
		Hooks: hooks,
	})
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	return &Site{API: api, Login: login, close: closeStore}, nil
}

// Close closes the store.
func (s *Site) Close() error { return s.close() }

func clientIP(proxies string) (core.KeyFunc, error) {
	if proxies == "" {
		return keyfuncs.NewClientIP()
	}
	return keyfuncs.NewClientIP(
		keyfuncs.TrustedProxies(strings.FieldsFunc(proxies, func(r rune) bool { return r == ',' || r == ' ' })...),
		keyfuncs.Header("X-Forwarded-For"),
	)
}

// failed says that an attempt to log in has failed: neither a server error nor
// a success counts.
func failed(o core.Outcome) bool { return o.Panicked || o.Status >= 400 && o.Status < 500 }

func succeeded(o core.Outcome) bool { return !o.Panicked && o.Status < 400 }

// PasswordRight tells whether a user may log in. Everybody's password is ok.
func PasswordRight(_, password string) bool { return password == "ok" }

// audit writes a line for each refused request. The line names the counter by
// a hash: neither the address nor the username stands in it, though who has the
// log can try addresses until one fits.
type audit struct {
	core.DefaultHooks
	log *slog.Logger
}

// OnDisallowed implements core.Hooks.
func (a audit) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	a.log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelWarn, "request refused",
		slog.String("route", r.Route()),
		slog.String("decision", d.String()),
		slog.String("counter", d.StoredKey()),
	)
	if d.Err != nil {
		a.log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelWarn, "why", slog.Any("error", d.Err))
	}
	return a.DefaultHooks.OnDisallowed(r, d)
}
