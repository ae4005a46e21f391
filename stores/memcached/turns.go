package memcachedstore

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// turns makes callers in one process swap the same item one after another: of
// many that try at once, all but one would fail and try again. Waiting ends
// with the context.
type turns struct {
	seed  maphash.Seed
	turns [1024]chan struct{} // each key has one of them; each has room for one caller
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.turns {
		t.turns[i] = make(chan struct{}, 1)
	}
	return t
}

// take waits for the turns of all items' keys and returns the function that
// ends them. Turns are taken in ascending order, so that no two callers wait
// for each other.
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
