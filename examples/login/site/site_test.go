package site

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestFlags(t *testing.T) {
	o, err := ParseFlags("login", nil, io.Discard)
	if want := Defaults(); err != nil || o != want {
		t.Errorf("%+v, %v, want %+v", o, err, want)
	}
	for _, args := range [][]string{{"-unknown"}, {"extra"}, {"-addr"}} {
		var out bytes.Buffer
		if _, err := ParseFlags("login", args, &out); err == nil || out.Len() == 0 {
			t.Errorf("%q: error %v, output %q", args, err, out.String())
		}
	}
	if _, err := ParseFlags("login", []string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestWrongOptionsAreNamed(t *testing.T) {
	for says, change := range map[string]func(*Options){
		`-store: scheme "redsi"`:                                                   func(o *Options) { o.Store = "redsi://x" },
		`-store: scheme "synced+http": want`:                                       func(o *Options) { o.Store = "synced+http://x" },
		`-store: interval: "soon"`:                                                 func(o *Options) { o.Store = "synced+redis://127.0.0.1/0?interval=soon" },
		`Interval: 1µs`:                                                            func(o *Options) { o.Store = "synced+redis://127.0.0.1/0?interval=1us" },
		`-store: "disk": want memory,`:                                             func(o *Options) { o.Store = "disk" },
		`-store: floodgate: configuration: servers: ["nonsense"]`:                  func(o *Options) { o.Store = "memcached://nonsense" },
		`-store: floodgate: configuration: Redis URL`:                              func(o *Options) { o.Store = "redis://127.0.0.1/nonsense" },
		`-trusted-proxies: floodgate: configuration: Behind: "nonsense"`:           func(o *Options) { o.TrustedProxies = "127.0.0.1,nonsense" },
		`-attempts: limits text "twenty"`:                                          func(o *Options) { o.Attempts = "twenty" },
		`-account-failures: "1/s, 2/m": want one limit`:                            func(o *Options) { o.AccountFailures = "1/s, 2/m" },
		`Lockout: waits of 1m: only fixed_window can have one, not sliding_window`: func(o *Options) { o.Failures = "5/m" },
		`Lockout.First: -1s`:                                                       func(o *Options) { o.Wait = -time.Second },
		`Secrets[0]: 5 bytes`:                                                      func(o *Options) { o.CookieSecret = "short" },
	} {
		o := Defaults()
		change(&o)
		if _, err := New(o, slog.Default(), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
	o := Defaults()
	o.TrustedProxies, o.Wait, o.Failures = "", 0, "5/m" // nobody is trusted
	s, err := New(o, slog.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
