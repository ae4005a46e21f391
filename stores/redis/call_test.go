package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// A reply that has come is used, although the call's time has passed since.
func TestAReplyThatHasComeIsUsed(t *testing.T) {
	failed := errors.New("failed")
	for range 100 { // of two channels that are ready, select takes any
		s := New(nil)
		s.patience = time.Nanosecond
		c := s.newCall(operation{t.Context(), time.Now()}, verbTake, nil)
		c.line = s.lines.whole
		c.finish(failed)
		if _, err := c.wait(); !errors.Is(err, failed) {
			t.Fatalf("error %v, want %v", err, failed)
		}
	}
}

// A call is known not to have run until it is serialised, and after a reply that
// proves it. Only then can it be withdrawn, and is never serialised again.
func TestACallIsWithdrawnOnlyWhileItHasNotRun(t *testing.T) {
	s := New(nil)
	now := time.Now()
	c := s.newCall(operation{t.Context(), now.Add(time.Hour)}, verbTake, nil)
	if c.sent() {
		t.Error("sent before it was serialised")
	}
	for range 2 { // a redirect
		if !c.send(now) || !c.sent() || c.withdraw() {
			t.Errorf("sent %v, or it could be withdrawn", c.sent())
		}
	}
	c.ranNot()
	if c.sent() || !c.withdraw() || !c.gone() {
		t.Error("a call that did not run cannot be withdrawn")
	}
	if c.send(now) || c.sent() {
		t.Errorf("a withdrawn call is serialised: sent %v", c.sent())
	}
	if c.ranNot(); c.sent() || c.withdraw() {
		t.Error("it is withdrawn twice")
	}
}

// A call whose client has hung up is not sent after its deadline.
func TestACallIsNotSentAfterItsDeadline(t *testing.T) {
	s := New(nil)
	now := time.Now()
	c := s.newCall(operation{context.Background(), now}, verbTake, nil)
	if c.send(now.Add(time.Nanosecond)) || !c.gone() {
		t.Error("it is sent after its deadline")
	}
	c = s.newCall(operation{context.Background(), now}, verbTake, nil)
	if !c.send(now) || !c.send(now.Add(time.Nanosecond)) {
		t.Error("a redirect after its deadline withdraws a call that was sent")
	}
}

// A call that is withdrawn when its command has been made, and not yet been written,
// is not charged, and the others of the command are.
func TestACallIsWithdrawnFromItsCommand(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	s := New(client, Timeout(20*time.Second), WithoutDenialCache())
	rule := newCounters(s, "l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(10)}}}).rules[0]
	if err := client.ScriptLoad(t.Context(), library.of(rule.algorithms).text.(string)).Err(); err != nil {
		t.Fatal(err)
	}
	items := func(i int, cost int64) []namedItem {
		return []namedItem{{&core.Item{Cost: cost, Results: make([]core.Result, 1)}, &rule, fmt.Sprint("k", i)}}
	}
	x := &exchange{store: s}
	all := make([]*call, 3)
	for i := range all {
		all[i] = s.newCall(s.begin(t.Context()), verbTake, items(i, 1))
	}
	x.calls = append(x.calls, all...)
	cmd := x.arm(t.Context(), x.script(), false)
	if !all[1].withdraw() {
		t.Fatal("it cannot be withdrawn")
	}
	x.settle(cmd, s.process(t.Context(), s.client, cmd))
	for i, c := range all {
		if err := c.err; (err != nil) != (i == 1) || len(c.done) != 1 {
			t.Errorf("call %d: error %v", i, err)
		}
		look := items(i, 0)
		if _, err := s.ask(s.begin(t.Context()), verbPeek, look); err != nil {
			t.Fatal(err)
		}
		want := int64(9)
		if i == 1 {
			want = 10
		}
		if got := look[0].Results[0].Remaining; got != want {
			t.Errorf("call %d: %d remain, want %d", i, got, want)
		}
	}
	x.calls = append(x.calls[:0], all[1])
	if _, err := x.serialise(); !errors.Is(err, errWithdrawn) {
		t.Errorf("a command without calls is written: error %v", err)
	}
}
