package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/examples/login/site"
	"github.com/floodgate-go/floodgate/examples/login/site/sitetest"
)

func TestSite(t *testing.T) {
	serve := func(s *site.Site) site.Server { return site.HTTPServer(routes(s)) }
	t.Run("memory", func(t *testing.T) { sitetest.Run(t, serve) })
	sitetest.RunWithStores(t, serve)
}

// A mistake names its flag, and no password.
func TestMistakesInFlags(t *testing.T) {
	o := site.Defaults()
	for _, c := range []struct {
		flag               *string
		text, starts, says string
	}{
		{&o.TrustedProxies, "10.0.0.0/8,x", "-trusted-proxies: ", `"x"`},
		{&o.Attempts, "many", "-attempts: ", "many"},
		{&o.Failures, "5/m, 9/h", "-failures: ", "want one limit"},
		{&o.AccountFailures, "9/x", "-account-failures: ", "9/x"},
		{&o.CookieSecret, "hush", "", "Secrets"},
		{&o.Store, "nowhere", "-store: ", `"nowhere": want ` + site.Stores},
		{&o.Store, "mysql://hush@a.test", "-store: ", `scheme "mysql": want ` + site.Stores},
		{&o.Store, "synced+memcached://hush@a.test", "-store: ", `scheme "synced+memcached": want ` + site.Stores},
		{&o.Store, "synced+redis://hush@a.test?interval=soon", "-store: ", `interval: "soon": want a duration such as 100ms`},
		{&o.Store, "synced+redis://:hush@a test", "-store: ", "synced: the URL cannot be read"},
		{&o.Store, "synced+postgres://u:hush@a.test/?sslmode=x", "-store: ", "synced: the PostgreSQL URL cannot be read"},
	} {
		before := *c.flag
		*c.flag = c.text
		_, err := site.New(o, slog.New(slog.DiscardHandler), nil)
		if err == nil || !strings.HasPrefix(err.Error(), c.starts) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %s and %s", c.text, err, c.starts, c.says)
		}
		*c.flag = before
	}
}
