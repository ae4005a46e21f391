package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"
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
		if _, err := c.wait(nil); !errors.Is(err, failed) {
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
