package synced_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

func TestWrongConfigurationIsNamed(t *testing.T) {
	_, err := synced.New(nil, synced.Config{Namespace: "a b", Interval: time.Microsecond, Windows: []time.Duration{1}, Near: 101, Timeout: 1, BatchSize: -1, MaxKeys: -2})
	for _, want := range []string{"backend: <nil>", `Namespace: "a b"`, "Interval: 1µs", "Windows[0]: 1ns", "Near: 101", "Timeout: 1ns", "BatchSize: -1", "MaxKeys: -2"} {
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	b := newShared()
	first := newStore(t, b, synced.Config{Interval: -1})
	if _, err := synced.New(b, synced.Config{Interval: -1}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `"default": is in use`) {
		t.Errorf("a namespace twice: %v", err)
	}
	newStore(t, b, synced.Config{Interval: -1, Namespace: "another"})
	_ = first.Close(context.Background())
	newStore(t, b, synced.Config{Interval: -1})

	s := newStore(t, nil, synced.Config{Interval: -1})
	for _, l := range []core.Limit{core.PerMinute(1), {Quota: 1, Window: time.Minute, Algorithm: core.TokenBucket}} {
		_, err := core.New(core.Config{Name: "x", Store: s, Rules: []core.Rule{{Name: "r", Key: core.TakeOnly, Limits: []core.Limit{l}}}})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r", limit "r"`) || !strings.Contains(err.Error(), "Aligned") {
			t.Errorf("%v: %v", l, err)
		}
	}
	if _, err := s.Increment(context.Background(), "k", time.Nanosecond, 1); !errors.Is(err, core.ErrConfig) {
		t.Errorf("a window of 1 ns: %v", err)
	}
	if _, err := s.Increment(context.Background(), "k", time.Second, -1); !errors.Is(err, core.ErrNegativeCost) {
		t.Errorf("a negative value: %v", err)
	}
	for want, c := range map[core.Traits]synced.Config{
		{NeverOpens: true, KeepsDeadline: true, FailsFast: true, OneStep: true, Private: true}: {Interval: -1, Namespace: "private"},
		{NeverOpens: true, KeepsDeadline: true, FailsFast: true, OneStep: true}:                {Interval: time.Hour},
		{NeverOpens: true, Closes: true, Exact: true}:                                          {},
	} {
		if got := core.Must(core.TraitsOf(newStore(t, newShared(), c))); got != want {
			t.Errorf("Interval %v: %+v, want %+v", c.Interval, got, want)
		}
	}
}

// named is a backend that names its server.
type named struct {
	*shared
	server string
}

func (b *named) Server() string { return b.server }

// Two limiters of one name on one server, in two stores of a process, are
// reported once, and only while both stores are open.
func TestOneNameOnOneServer(t *testing.T) {
	var log bytes.Buffer
	b := newShared()
	start := func(server, namespace, name string) *synced.Store {
		s := newStore(t, &named{b, server}, synced.Config{Namespace: namespace, Interval: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := core.New(core.Config{Name: name, Store: s, Rules: []core.Rule{{Name: "r", Key: core.TakeOnly, Limits: []core.Limit{aligned(1, time.Hour)}}}}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := start("one", "ns", "api")
	start("two", "ns", "api")
	start("one", "other", "api")
	start("one", "ns", "web")
	if log.Len() != 0 {
		t.Errorf("the log: %s", &log)
	}
	second := start("one", "ns", "api")
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "limiter=api namespace=ns server=one") {
		t.Errorf("the log: %s", text)
	}
	for _, s := range []*synced.Store{first, second} {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	log.Reset()
	if start("one", "ns", "api"); log.Len() != 0 {
		t.Errorf("after both were closed: %s", &log)
	}
}
