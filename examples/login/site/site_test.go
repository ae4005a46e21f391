package site

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

func TestFlags(t *testing.T) {
	o, err := ParseFlags("login", nil, io.Discard)
	if want := (Options{Addr: "127.0.0.1:8080", Store: "memory", TrustedProxies: "127.0.0.2/32"}); err != nil || o != want {
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
	for _, row := range []struct {
		o    Options
		says string
	}{
		{Options{Store: "redsi://x"}, `-store: scheme "redsi"`},
		{Options{Store: "disk"}, `-store: "disk": want memory, redis://`},
		{Options{Store: "memcached://nonsense"}, `-store: floodgate: configuration: servers: ["nonsense"]`},
		{Options{Store: "redis://127.0.0.1/nonsense"}, `-store: floodgate: configuration: Redis URL`},
		{Options{Store: "memory", TrustedProxies: "127.0.0.1,nonsense"}, `-trusted-proxies: floodgate: configuration: TrustedProxies: "nonsense"`},
	} {
		if _, err := New(row.o, slog.Default(), nil); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%+v: error %v, want %q", row.o, err, row.says)
		}
	}
	s, err := New(Options{Store: "memory"}, slog.Default(), nil) // nobody is trusted
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatCounts(t *testing.T) {
	for status, want := range map[int][2]bool{200: {false, true}, 302: {false, true}, 401: {true, false}, 422: {true, false}, 500: {false, false}} {
		o := core.Outcome{Status: status}
		if failed(o) != want[0] || succeeded(o) != want[1] {
			t.Errorf("%d: failed %v, succeeded %v", status, failed(o), succeeded(o))
		}
	}
	if o := (core.Outcome{Status: 200, Panicked: true}); !failed(o) || succeeded(o) {
		t.Error("a panic is no failure")
	}
}
