package synced_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

func TestWrongConfigurationIsNamed(t *testing.T) {
	_, err := synced.New(nil, synced.Config{Namespace: "a b", Interval: time.Microsecond, Windows: []time.Duration{1}, Timeout: 1, MaxKeys: -2})
	for _, want := range []string{"backend: <nil>", `Namespace: "a b"`, "Interval: 1µs", "Windows[0]: 1ns", "Timeout: 1ns", "MaxKeys: -2"} {
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	b := newShared()
	first := newStore(t, b, synced.Config{Interval: -1})
	if c := first.Config(); c.Namespace != synced.DefaultNamespace || c.Interval != -1 || c.MaxKeys != synced.DefaultMaxKeys {
		t.Errorf("the configuration is %+v", c)
	}
	if _, err := synced.New(b, synced.Config{Interval: -1}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `"default": is in use`) {
		t.Errorf("a namespace twice: %v", err)
	}
	newStore(t, b, synced.Config{Interval: -1, Namespace: "another"})
	_ = first.Close(context.Background())
	newStore(t, b, synced.Config{Interval: -1})

	s := newStore(t, nil, synced.Config{Interval: -1, Windows: []time.Duration{time.Minute}})
	for _, l := range []core.Limit{core.PerMinute(1), {Quota: 1, Window: time.Minute, Algorithm: core.TokenBucket}} {
		_, err := core.New(core.Config{Name: "x", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{l}}}})
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r", limit "r"`) || !strings.Contains(err.Error(), "Aligned") {
			t.Errorf("%v: %v", l, err)
		}
	}
	_, err = core.New(core.Config{Name: "x", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMonth(1)}}}})
	if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "leave Zone out") {
		t.Errorf("a month: %v", err)
	}
	if _, err := s.Increment(context.Background(), "k", time.Nanosecond, 1); !errors.Is(err, core.ErrConfig) {
		t.Errorf("a window that is not in Windows: %v", err)
	}
	if _, err := s.Increment(context.Background(), "k", time.Second, core.MaxQuota+1); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "value: 2147483648") {
		t.Errorf("a value above the highest quota: %v", err)
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
		"Timeout": {
			good: []synced.Config{{Timeout: time.Millisecond}, {Timeout: day}},
			bad:  []synced.Config{{Timeout: time.Millisecond - 1}, {Timeout: 1}, {Timeout: -1}},
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
