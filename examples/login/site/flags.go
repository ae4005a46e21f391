package site

import (
	"crypto/rand"
	"flag"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// Options are what the flags set.
type Options struct {
	Addr           string // address to listen on
	Store          string // where counters live: a name or URL
	StoreTimeout   time.Duration
	TrustedProxies string // addresses and prefixes, with commas between

	Attempts        string // limit of each address, as core.ParseLimits reads it
	Failures        string // limit of each address and username
	AccountFailures string // limit of each username
	CookieSecret    string
}

// Defaults are the options without any flags.
func Defaults() Options {
	return Options{
		Addr: "127.0.0.1:8080", Store: "memory", StoreTimeout: 100 * time.Millisecond, TrustedProxies: "127.0.0.2/32",
		Attempts: "20/m", Failures: "5/m fixed_window", AccountFailures: "50/h bucketed_window precision=5m",
	}
}

// parseFlags reads the program's arguments.
func parseFlags() Options {
	o := Defaults()
	flag.StringVar(&o.Addr, "addr", o.Addr, "address to listen on")
	flag.StringVar(&o.Store, "store", o.Store, "where counters live: "+Stores)
	flag.DurationVar(&o.StoreTimeout, "store-timeout", o.StoreTimeout, "how long a shared store may take to answer, before this process counts by itself")
	flag.StringVar(&o.TrustedProxies, "trusted-proxies", o.TrustedProxies, "addresses and prefixes, with commas between, of proxies whose X-Forwarded-For is believed")
	flag.StringVar(&o.Attempts, "attempts", o.Attempts, "attempts to log in of each address")
	flag.StringVar(&o.Failures, "failures", o.Failures, "failures of each address and username")
	flag.StringVar(&o.AccountFailures, "account-failures", o.AccountFailures, "failures of each username, from all addresses")
	flag.StringVar(&o.CookieSecret, "cookie-secret", o.CookieSecret, "secret of device cookies, 32 bytes or more; empty: one that ends with the program")
	flag.Parse()
	return o
}

// loginConfig returns what the guard is to be made of. The cookies travel
// without TLS, as this site does.
func (o *Options) loginConfig() (c login.Config, err error) {
	c = login.Config{Field: "username", CookieName: "device", InsecureCookie: true}
	for _, f := range []struct {
		flag, text string
		to         *core.Limit
	}{{"attempts", o.Attempts, &c.Attempts}, {"failures", o.Failures, &c.Failures}, {"account-failures", o.AccountFailures, &c.AccountFailures}} {
		limits, err := core.ParseLimits(f.text)
		if err == nil && len(limits) != 1 {
			err = fmt.Errorf("%q: want one limit", f.text)
		}
		if err != nil {
			return c, fmt.Errorf("-%s: %w", f.flag, err)
		}
		*f.to = limits[0]
	}
	secret := []byte(o.CookieSecret)
	if len(secret) == 0 {
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
	}
	c.Secrets = [][]byte{secret}
	return c, nil
}
