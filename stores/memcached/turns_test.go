package memcachedstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/floodgate-go/floodgate/core"
)

// keysWithTurns returns n items with different turns, in the order of these.
func keysWithTurns(t *testing.T, all *turns, n int) []core.Item {
	t.Helper()
	byTurn := map[int]core.Item{}
	for i := range 10_000 {
		it := core.Item{Key: fmt.Append(nil, i)}
		leave, err := all.take(t.Context(), []core.Item{it})
		if err != nil {
			t.Fatal(err)
		}
		for place := range all.turns {
			if len(all.turns[place]) == 1 {
				byTurn[place] = it
			}
		}
		leave()
	}
	var items []core.Item
	for place := range all.turns {
		if it, found := byTurn[place]; found && len(items) < n {
			items = append(items, it)
		}
	}
	if len(items) < n {
		t.Fatal("the keys have too few turns")
	}
	return items
}

// A wait for the turns of several keys that ends with its context leaves the
// turns that it has taken: the keys are free for others.
func TestAWaitForTurnsThatEndsLeavesTheTurnsThatItHasTaken(t *testing.T) {
	all := newTurns()
	items := keysWithTurns(t, all, 3)
	leave, err := all.take(t.Context(), items[2:])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, order := range [][]core.Item{{items[0], items[1], items[2]}, {items[2], items[1], items[0]}} {
		// Which of the two cases of a select is taken is up to chance.
		for range 50 {
			if _, err := all.take(ctx, order); !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
		}
	}
	leave()
	for place := range all.turns {
		if len(all.turns[place]) != 0 {
			t.Errorf("turn %d is still taken", place)
		}
	}
}

// Callers that take the same keys in different orders do not wait for each other
// without end, and no two of them have the turn of a key at once.
func TestTurnsAreTakenInOneOrder(t *testing.T) {
	all := newTurns()
	items := keysWithTurns(t, all, 2)
	synctest.Test(t, func(t *testing.T) {
		for i := range all.turns { // those of the bubble
			all.turns[i] = make(chan struct{}, 1)
		}
		leave, err := all.take(t.Context(), items[:1])
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{}, 2)
		for _, order := range [][]core.Item{{items[0], items[1]}, {items[1], items[0], items[1]}} {
			go func() {
				leave, err := all.take(t.Context(), order)
				if err != nil {
					t.Error(err)
					return
				}
				done <- struct{}{}
				leave()
			}()
		}
		synctest.Wait() // both wait for the first turn, and have not taken the second
		taken := 0
		for i := range all.turns {
			taken += len(all.turns[i])
		}
		if taken != 1 || len(done) != 0 {
			t.Errorf("%d turns are taken, and %d callers are through, while one waits for the first", taken, len(done))
		}
		leave()
		<-done
		<-done
	})
}
