package memtable

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// A block ends at its time, and is then removed.
func TestABlockIsOverAtItsEnd(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perMinute(5))
	p := b.open()
	p.Block(now0+second, now0)
	for _, row := range []struct{ now, want int64 }{{now0, now0 + second}, {now0 + second - 1, now0 + second}, {now0 + second, 0}} {
		if got := p.BlockedUntil(row.now); got != row.want {
			t.Errorf("at %d: blocked until %d, want %d", row.now-now0, got, row.want)
		}
	}
	if n := ts.blocked.n.Load(); n != 0 || len(ts.blocked.until) != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

// The block of a key that nobody asks for again is removed too: while there is one, each take looks
// for its own.
func TestABlockThatNobodyAsksForIsRemoved(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perMinute(5))
	gone := b.Place(0, []byte("gone\x00"))
	gone.Block(now0+second, now0)
	p := b.open()
	for now := int64(now0); now < now0+minute; now += second {
		p.BlockedUntil(now)
	}
	if n := ts.blocked.n.Load(); n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

// A table that has as many blocks as keys forgets the ones that are over, or the one that is over
// first.
func TestTheBlocksOfATableAreBounded(t *testing.T) {
	key := func(b *Binding, k string) *Place { p := b.Place(0, []byte(k+"\x00")); return &p }
	ts := New(3, 0)
	b := bind(t, ts, perMinute(5))
	for k, length := range map[string]int64{"a": minute, "b": second, "c": hour} {
		key(b, k).Block(now0+length, now0)
	}
	for _, k := range []string{"a", "b", "c"} { // as many as there may be
		if key(b, k).BlockedUntil(now0) == 0 {
			t.Errorf("%s is not blocked", k)
		}
	}
	key(b, "d").Block(now0+day, now0)
	for k, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if got := key(b, k).BlockedUntil(now0) != 0; got != want {
			t.Errorf("%s is blocked: %t, want %t", k, got, want)
		}
	}
	key(b, "e").Block(now0+hour, now0+minute) // a is over, so that there is room
	for k, want := range map[string]bool{"c": true, "d": true, "e": true} {
		if got := key(b, k).BlockedUntil(now0+minute) != 0; got != want {
			t.Errorf("after a minute, %s is blocked: %t, want %t", k, got, want)
		}
	}
}

// A block that ends at once is none.
func TestABlockOfNoLength(t *testing.T) {
	ts := New(100, 0)
	p := bind(t, ts, perMinute(5)).open()
	if p.Block(now0, now0); len(ts.blocked.until) != 0 || ts.blocked.n.Load() != 0 {
		t.Error("a block that is over is kept")
	}
}

// A reset of all keys of a limiter ends its blocks, and those of no other limiter.
func TestAResetOfAllEndsTheBlocksOfTheLimiter(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perMinute(5))
	other, err := ts.Bind("other", []Rule{{"r", []meter.Limit{perMinute(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, the limiter has no block
		if err := b.ResetAll(); err != nil {
			t.Fatal(err)
		}
		b.open().Block(now0+second, now0)
		other.open().Block(now0+second, now0)
		if err := b.ResetAll(); err != nil {
			t.Fatal(err)
		}
		if until, n := b.open().BlockedUntil(now0), ts.blocked.n.Load(); until != 0 || n != 1 {
			t.Errorf("blocked until %d; %d blocks are left, want that of the other limiter", until, n)
		}
		if other.open().BlockedUntil(now0) == 0 {
			t.Error("the key of another limiter is not blocked any more")
		}
	}
}

// A rule that has gone keeps no blocks.
func TestARuleThatHasGoneIsNotBlocked(t *testing.T) {
	ts := New(100, 0)
	b := bind(t, ts, perMinute(5))
	p := b.open()
	p.layout.rule.retired.Store(true)
	if p.Block(now0+second, now0); len(ts.blocked.until) != 0 {
		t.Error("a rule that has gone is blocked")
	}
}
