package live

import (
	"sync/atomic"

	"github.com/floodgate-go/floodgate/live/internal/sketch"
)

const (
	// noted is how many decisions of a second are looked at for their key, in each sketch
	// of a limiter.
	noted = 200_000
	// sampled is how many decisions one of those above it stands for.
	sampled = 64
)

// keys are the most frequent keys of some decisions.
type keys struct {
	*sketch.Sketch
	each atomic.Int64 // how many decisions of this second are still noted each
}

// weight returns how many decisions the n-th one stands for: 1, sampled, or 0. Multiples of the golden ratio choose one in sampled, so that no
// rhythm of the traffic hides a key.
func (k *keys) weight(n uint64) uint64 {
	switch {
	case k.each.Load() > 0 && k.each.Add(-1) >= 0:
		return 1
	case n*0x9e3779b97f4a7c15 < 1<<64/sampled:
		return sampled
	default:
		return 0
	}
}

// pass begins another second. Each minute, what came before it counts half as much.
func (k *keys) pass(second int64) {
	k.each.Store(noted)
	if second%60 == 0 {
		k.Halve()
	}
}
