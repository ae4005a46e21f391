package redisstore_test

import (
	"math/rand/v2"
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
)

// The script does what package swapstore does, whose formats say the same: it decides
// alike, and stores the same, for the same time. So it is for several keys and limits at once, with states of
// another program's limits, values that are damaged, foreign or newer, and a clock that also goes back.
func TestTheScriptDoesAsTheStoreInGo(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds(60) {
		d := newDuel(t, r, seed, round, client)
		for d.step = range 60 {
			d.persisted = -1
			if r.IntN(5) == 0 {
				d.meddle(r.IntN(len(d.names)))
			}
			d.operate()
			d.advance()
		}
	}
}
