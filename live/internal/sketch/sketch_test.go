package sketch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func key(i int) Key { return Key{Group: i % 3, Key: fmt.Sprintf("key %d", i)} }

// The bounds of the algorithm hold for every stream: no count is too small, each is too
// large by Over at most, and a frequent key is there.
func TestCountsAreWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, came, notes, total := New(16), map[Key]uint64{}, map[Key]uint64{}, [parts]uint64{}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			k, note := key(rapid.IntRange(0, 40).Draw(t, "key")), rapid.Uint64().Draw(t, "note")
			n := uint64(rapid.IntRange(1, 3).Draw(t, "n")) //nolint:gosec // above 0
			s.Add(k, n, note)
			came[k] += n
			notes[k] = note
			checkHeaps(t, s)
		}
		for i := range s.parts {
			for j := range s.parts[i].slots {
				total[i] += s.parts[i].slots[j].count
			}
		}
		top := s.Top(1000)
		seen := map[Key]Counted{}
		for i, c := range top {
			if i > 0 && c.Count-c.Over > top[i-1].Count-top[i-1].Over {
				t.Fatalf("not in order: %v", top)
			}
			if want := came[c.Key]; c.Count < want || c.Count-c.Over > want {
				t.Fatalf("%v, true %d", c, want)
			}
			if c.Note != notes[c.Key] {
				t.Fatalf("%v, want the note %d", c, notes[c.Key])
			}
			if _, twice := seen[c.Key]; twice {
				t.Fatalf("%v is there twice", c)
			}
			seen[c.Key] = c
		}
		for k, n := range came {
			if _, ok := seen[k]; !ok && n > slices.Max(total[:])/2 { // each part has 2 counters
				t.Fatalf("%v came %d times and is missing", k, n)
			}
		}
	})
}

func checkHeaps(t *rapid.T, s *Sketch) {
	for i := range s.parts {
		p := &s.parts[i]
		if len(p.index) != len(p.slots) || len(p.heap) != len(p.slots) {
			t.Fatalf("%d slots, %d in the index, %d in the heap", len(p.slots), len(p.index), len(p.heap))
		}
		for j := range p.slots {
			if p.index[p.slots[j].hash] != int32(j) {
				t.Fatal("the index is wrong")
			}
			if p.slots[j].placed > p.slots[j].count {
				t.Fatal("a slot is placed as if it had counted more")
			}
			if j > 0 && p.placed((j-1)/2) > p.placed(j) {
				t.Fatal("no heap")
			}
		}
	}
}

func TestWhatIsHalved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, counts := New(800), map[Key]uint64{}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			if rapid.IntRange(0, 30).Draw(t, "op") == 0 {
				s.Halve()
				for k := range counts {
					if counts[k] /= 2; counts[k] == 0 {
						delete(counts, k)
					}
				}
			} else {
				k := key(rapid.IntRange(0, 60).Draw(t, "key"))
				s.Add(k, 1, 1)
				counts[k]++
			}
			checkHeaps(t, s)
		}
		top := s.Top(1000)
		for _, c := range top {
			if counts[c.Key] != c.Count || c.Over != 0 {
				t.Fatalf("%v, want %d", c, counts[c.Key])
			}
		}
		if len(top) != len(counts) {
			t.Fatalf("%d keys, want %d", len(top), len(counts))
		}
	})
}

// Halving leaves of each count that is certain no more than half, rounded up.
func TestWhatIsPossibleIsHalvedToo(t *testing.T) {
	s, came := New(16), map[Key]uint64{}
	for i := range 400 {
		k := key(i % 37)
		s.Add(k, 1, 1)
		came[k]++
	}
	for range 3 {
		s.Halve()
		for k := range came {
			came[k] = (came[k] + 1) / 2
		}
		top := s.Top(16)
		if !slices.ContainsFunc(top, func(c Counted) bool { return c.Over > 0 }) {
			t.Fatalf("nothing was taken over: %v", top)
		}
		for _, c := range top {
			if c.Over > c.Count || c.Count-c.Over > came[c.Key] {
				t.Errorf("%v, at most %d for certain", c, came[c.Key])
			}
		}
	}
}

// A long key is cut, and not confused with another that begins like it.
func TestALongKeyIsCut(t *testing.T) {
	s := New(8)
	long := strings.Repeat("a", longest)
	for _, k := range []Key{{Key: long}, {Key: long + "b"}, {Key: long, Extra: "c"}, {Key: "a", Extra: long}} {
		s.Add(k, 1, 1)
	}
	whole := 0
	for _, c := range s.Top(9) {
		if !c.Cut {
			whole++
		}
		if len(c.Key.Key)+len(c.Extra) > longest {
			t.Errorf("%d bytes are kept", len(c.Key.Key)+len(c.Extra))
		}
	}
	if whole > 1 {
		t.Errorf("%d keys are whole, want 1", whole)
	}
}

// Of an attack with many keys, the top 20 are found: a Zipf distribution in uniform noise. The keys of the
// distribution may be others from time to time. A key with nearly as many hits as the true 20th may stand in its place.
func TestTheTopOfAnAttackIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		places, phases, keys int
		exponent             float64
	}{
		"the same keys":  {2048, 1, 1_500_000, 1.1},
		"keys change":    {512, 6, 100_000, 1.05},
		"few keys often": {512, 6, 100_000, 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			zipf := rand.NewZipf(r, c.exponent, 1, 1_000_000)
			s, counts := New(c.places), map[int]int{}
			for phase := range c.phases {
				for i := range c.keys {
					k := r.IntN(1_000_000)
					if i%2 == 0 {
						k = 1_000_000*(phase+1) + int(zipf.Uint64()) //nolint:gosec // at most a million
					}
					counts[k]++
					s.Add(Key{Key: strconv.Itoa(k)}, 1, 1)
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

func TestConcurrentCountsAreAllThere(t *testing.T) {
	s := New(64)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				s.Add(key(i%4), 1, 1)
				if i%100 == 0 {
					_ = s.Top(3)
				}
			}
		})
	}
	wg.Wait()
	sum := uint64(0)
	for _, c := range s.Top(10) {
		sum += c.Count
	}
	if sum != 8000 {
		t.Errorf("%d, want 8000", sum)
	}
}

// Memory does not grow with the number of keys.
func TestMemoryAllocationsEndWhenItIsFull(t *testing.T) {
	s, keys := New(512), make([]Key, 20_000)
	for i := range keys {
		keys[i] = Key{Key: fmt.Sprintf("key %08d", i)}
		s.Add(keys[i], 1, 1)
	}
	i := 0
	if n := testing.AllocsPerRun(10_000, func() { s.Add(keys[i%len(keys)], 1, 1); i++ }); n > 0 {
		t.Errorf("%v allocations for each key", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{1, 1000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, keys := New(2048), make([]Key, n)
			for i := range keys {
				keys[i] = Key{Key: fmt.Sprintf("2001:db8::%x", i)}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s.Add(keys[i], 1, 1)
				if i++; i == n {
					i = 0
				}
			}
			runtime.KeepAlive(s)
		})
	}
}
