package memcachedstore

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// turns lets those who are about to swap the same item in one process do it one
// after the other: of many that try at once, all but one would fail and try
// again. Waiting ends with the context.
type turns struct {
	seed  maphash.Seed
	turns [1024]chan struct{} // a key has one of them; each has room for one
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.turns {
		t.turns[i] = make(chan struct{}, 1)
	}
	return t
}

// take waits for the turn of all items' keys and returns what ends it. Turns
// are taken in ascending order, so that no two wait for each other.
func (t *turns) take(ctx context.Context, items []core.Item) (leave func(), err error) {
	places := make([]int, 0, len(items))
	for i := range items {
		var h maphash.Hash
		h.SetSeed(t.seed)
		_ = h.WriteByte(byte(items[i].Rule))
		_, _ = h.Write(items[i].Key)
		places = append(places, int(h.Sum64()%uint64(len(t.turns))))
	}
	slices.Sort(places)
	places = slices.Compact(places)
	for i, p := range places {
		select {
		case t.turns[p] <- struct{}{}:
		case <-ctx.Done():
			t.leave(places[:i])
			return nil, ctx.Err()
		}
	}
	return func() { t.leave(places) }, nil
}

func (t *turns) leave(places []int) {
	for _, p := range places {
		<-t.turns[p]
	}
}
