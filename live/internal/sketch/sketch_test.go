package sketch_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/live/internal/sketch"
)

func key(i int) sketch.Key {
	return sketch.Key{Rule: fmt.Sprint("rule ", i%3), Key: fmt.Sprintf("key %d", i)}
}

// The bounds of the algorithm hold for every stream: no count is too small, and each is too large
// by Over at most. Halving halves them too. If there is room for all keys, each count is exact.
func TestCountsAreWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.SampledFrom([]int{16, 800}).Draw(t, "room")
		s, came, notes := sketch.New(room), map[sketch.Key]uint64{}, map[sketch.Key]sketch.Note{}
		halved := uint64(0)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			if rapid.IntRange(0, 30).Draw(t, "op") == 23 { // rarely: rapid prefers small numbers
				s.Halve()
				halved++
				for k := range came {
					if came[k] /= 2; came[k] == 0 {
						delete(came, k)
					}
				}
				continue
			}
			k, note := key(rapid.IntRange(0, 40).Draw(t, "key")), sketch.Note{Used: rapid.Int64().Draw(t, "note")}
			s.Add(k, note)
			came[k]++
			notes[k] = note
		}
		top := s.Top(1000)
		seen := map[sketch.Key]bool{}
		for i, c := range top {
			if i > 0 && c.Count-c.Over > top[i-1].Count-top[i-1].Over {
				t.Fatalf("not in order: %v", top)
			}
			// Each halving may cut a half of the count, and another one of Over.
			if want := came[c.Key]; room == 16 && (c.Count+2*halved < want || c.Count-c.Over > want+2*halved) || room == 800 && (c.Count != want || c.Over != 0) {
				t.Fatalf("%v, true %d", c, want)
			}
			if c.Note != notes[c.Key] || seen[c.Key] {
				t.Fatalf("%v, want the note %v, once", c, notes[c.Key])
			}
			seen[c.Key] = true
		}
		if room == 800 && len(top) != len(came) || len(top) > room {
			t.Fatalf("%d keys, want %d", len(top), len(came))
		}
	})
}

// The top 20 of an attack are found: a Zipf distribution in uniform noise. The keys of the
// distribution may be others from time to time. A key with nearly as many hits as the true 20th
// may stand in its place.
func TestTheTopOfAnAttackIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		places, phases, keys int
		exponent             float64
	}{
		"the same keys": {2048, 1, 400_000, 1.1},
		"keys change":   {512, 4, 100_000, 1.05},
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			zipf := rand.NewZipf(r, c.exponent, 1, 1_000_000)
			s, counts := sketch.New(c.places), map[int]int{}
			for phase := range c.phases {
				for i := range c.keys {
					k := r.IntN(1_000_000)
					if i%2 == 0 {
						k = 1_000_000*(phase+1) + int(zipf.Uint64()) //nolint:gosec // at most a million
					}
					counts[k]++
					s.Add(sketch.Key{Key: strconv.Itoa(k)}, sketch.Note{})
				}
				true20 := slices.Sorted(maps.Values(counts))
				last, found := true20[len(true20)-20], 0
				for _, c := range s.Top(20) {
					if k, err := strconv.Atoi(c.Key.Key); err == nil && counts[k] >= last-last/10 {
						found++
					}
				}
				if found < 19 {
					t.Errorf("in phase %d, %d of the 20 keys are among the top of %d, with %d hits or nearly as many", phase, found, len(counts), last)
				}
			}
		})
	}
}

// Memory does not grow with the number of keys.
func TestMemoryAllocationsEndWhenItIsFull(t *testing.T) {
	s, keys := sketch.New(512), make([]sketch.Key, 20_000)
	for i := range keys {
		keys[i] = sketch.Key{Key: fmt.Sprintf("key %08d", i)}
		s.Add(keys[i], sketch.Note{})
	}
	i := 0
	if n := testing.AllocsPerRun(10_000, func() { s.Add(keys[i%len(keys)], sketch.Note{}); i++ }); n > 0 {
		t.Errorf("%v allocations for each key", n)
	}
}
