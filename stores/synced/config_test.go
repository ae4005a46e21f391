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
	if c := first.Config(); c.Namespace != synced.DefaultNamespace || c.Interval != -1 || c.BatchSize != synced.DefaultBatchSize || c.MaxKeys != synced.DefaultMaxKeys {
		t.Errorf("the configuration is %+v", c)
	}
	if _, err := synced.New(b, synced.Config{Interval: -1}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `"default": is in use`) {
		t.Errorf("a namespace twice: %v", err)
	}
	newStore(t, b, synced.Config{Interval: -1, Namespace: "another"})
	_ = first.Close(context.Background())
	newStore(t, b, synced.Config{Interval: -1})

	s := newStore(t, nil, synced.Config{Interval: -1})
	for _, l := range []core.Limit{core.PerMinute(1), {Quota: 1, Window: time.Minute, Algorithm: core.TokenBucket}} {
		_, err := core.New(core.Config{Name: "x", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{l}}}})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r", limit "r"`) || !strings.Contains(err.Error(), "Aligned") {
			t.Errorf("%v: %v", l, err)
		}
	}
	_, err = core.New(core.Config{Name: "x", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMonth(1)}}}})
	if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "Zone: UTC: windows of the calendar") {
		t.Errorf("a month: %v", err)
	}
	if _, err := s.Increment(context.Background(), "k", time.Nanosecond, 1); !errors.Is(err, core.ErrConfig) {
		t.Errorf("a window of 1 ns: %v", err)
	}
	if _, err := s.Increment(context.Background(), "k", time.Second, -1); !errors.Is(err, core.ErrNegativeCost) {
		t.Errorf("a negative value: %v", err)
	}
	const ops = core.OpTake | core.OpPeek | core.OpCharge | core.OpRefund | core.OpReset
	for want, c := range map[core.Guarantees]synced.Config{
		{Ops: ops, OneStep: true, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailLocal}:               {Interval: -1, Namespace: "private"},
		{Ops: ops, OneStep: true, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailLocal, Shared: true}: {Interval: time.Hour},
		{Ops: ops, Exact: true, OnFailure: core.FailClosed, Shared: true}:                                        {},
	} {
		if got := newStore(t, newShared(), c).Guarantees(); got != want {
			t.Errorf("Interval %v: %+v, want %+v", c.Interval, got, want)
		}
	}
}

// Each field accepts the first and the last of its values, and no value beyond.
func TestTheBoundsOfEachField(t *testing.T) {
	for field, values := range map[string]struct{ good, bad []synced.Config }{
		"Namespace": {
			good: []synced.Config{{Namespace: "a"}, {Namespace: strings.Repeat("a", 64)}},
			bad:  []synced.Config{{Namespace: strings.Repeat("a", 65)}, {Namespace: "{"}},
		},
		"Interval": {
			good: []synced.Config{{Interval: -day}, {Interval: -1}, {Interval: 0}, {Interval: synced.MinInterval}, {Interval: 1000 * day}},
			bad:  []synced.Config{{Interval: 1}, {Interval: synced.MinInterval - 1}},
		},
		"Windows[0]": {
			good: []synced.Config{{Windows: []time.Duration{time.Millisecond}}, {Windows: []time.Duration{366 * day}}},
			bad:  []synced.Config{{Windows: []time.Duration{time.Millisecond - time.Microsecond}}, {Windows: []time.Duration{366*day + time.Microsecond}}},
		},
		"Near": {
			good: []synced.Config{{Near: 0}, {Near: 1}, {Near: 100}},
			bad:  []synced.Config{{Near: -1}, {Near: 101}},
		},
		"Timeout": {
			good: []synced.Config{{Timeout: time.Millisecond}, {Timeout: day}},
			bad:  []synced.Config{{Timeout: time.Millisecond - 1}, {Timeout: 1}, {Timeout: -1}},
		},
		"BatchSize": {
			good: []synced.Config{{BatchSize: 1}, {BatchSize: 1_000_000}},
			bad:  []synced.Config{{BatchSize: -1}},
		},
		"MaxKeys": {
			good: []synced.Config{{MaxKeys: 1}, {MaxKeys: 100_000_000}},
			bad:  []synced.Config{{MaxKeys: -1}},
		},
	} {
		for _, c := range values.good {
			c.Log = quiet
			s, err := synced.New(newShared(), c)
			if err != nil {
				t.Errorf("%s: %v", field, err)
				continue
			}
			_ = s.Close(t.Context())
		}
		for _, c := range values.bad {
			if _, err := synced.New(newShared(), c); !errors.Is(err, core.ErrConfig) || strings.Count(err.Error(), "\n") != 0 || !strings.Contains(err.Error(), ": "+field+": ") {
				t.Errorf("%s: %+v: %v", field, c, err)
			}
		}
	}
	for interval, valid := range map[time.Duration]bool{-1: true, 0: false, time.Hour: false} {
		if s, err := synced.New(nil, synced.Config{Interval: interval}); (err == nil) != valid {
			t.Errorf("without a backend, Interval %v: %v, %v", interval, s, err)
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
		if _, err := core.New(core.Config{Name: name, Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{aligned(1, time.Hour)}}}}); err != nil {
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
	reported := func(when string) {
		t.Helper()
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "limiter=api namespace=ns server=one") {
			t.Errorf("%s: the log: %s", when, text)
		}
		log.Reset()
	}
	reported("two stores")
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	third := start("one", "ns", "api")
	reported("the first was closed, the second is open")
	for _, s := range []*synced.Store{second, third} {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if start("one", "ns", "api"); log.Len() != 0 {
		t.Errorf("after all were closed: %s", &log)
	}
}
