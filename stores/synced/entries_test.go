package synced

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
)

// The table of a shard does what a map does, whatever hashes the keys have.
func TestEntriesAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table entries
		model := map[ident]*entry{}
		homes := rapid.SampledFrom([]uint64{1, 3, 1 << 8}).Draw(t, "homes")
		ids := rapid.Custom(func(t *rapid.T) ident {
			home := rapid.Uint64Range(0, homes-1).Draw(t, "home")
			return ident{a: home*(^uint64(0)/homes) + home, b: rapid.Uint64Range(0, 9).Draw(t, "b") << 54}
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if model[id] == nil {
					model[id] = &entry{}
					table.add(id, model[id])
				}
			},
			"remove": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if model[id] != nil {
					table.remove(model[id])
					delete(model, id)
				}
			},
			"walk": func(t *rapid.T) {
				seen := map[*entry]bool{}
				remove := rapid.SliceOfN(rapid.Bool(), len(model), len(model)).Draw(t, "remove")
				before := len(model)
				for e := range table.walk() {
					if remove[min(len(seen), len(remove)-1)] && !seen[e] {
						table.remove(e)
						delete(model, e.id)
					}
					seen[e] = true
				}
				if len(seen) != before {
					t.Fatalf("a walk has yielded %d of %d entries", len(seen), before)
				}
			},
			"": func(t *rapid.T) {
				if table.used != len(model) {
					t.Fatalf("%d entries, want %d", table.used, len(model))
				}
				all := 0
				for e := range table.all() {
					if all++; model[e.id] != e {
						t.Fatal("an entry that was removed is still there")
					}
				}
				if all != len(model) {
					t.Fatalf("%d entries of %d are yielded", all, len(model))
				}
				for id, e := range model {
					if table.get(id) != e {
						t.Fatalf("the entry of %v is not found", id)
					}
				}
				if id := ids.Draw(t, "other"); model[id] == nil && table.get(id) != nil {
					t.Fatalf("%v has an entry", id)
				}
			},
		})
	})
}

// A walk begins behind the last entry of the one before, so that short walks come
// to every entry.
func TestWalksGoOn(t *testing.T) {
	const many = 100
	var table entries
	for i := range uint64(many) {
		table.add(ident{a: i * (^uint64(0) / many)}, counted(0, 0))
	}
	seen := map[*entry]int{}
	for range 2 * many / 10 {
		n := 0
		for e := range table.walk() {
			seen[e]++
			if n++; n == 10 {
				break
			}
		}
	}
	for e, n := range seen {
		if n != 2 {
			t.Errorf("%v was seen %d times in two rounds", e.id, n)
		}
	}
	if len(seen) != many {
		t.Errorf("%d of %d were seen", len(seen), many)
	}
}

// Four fifths of the places are used at most, so that searches are short, and at
// least a half, so that memory is.
func TestHowFullATableIs(t *testing.T) {
	var table entries
	for i := range uint64(10_000) {
		table.add(ident{a: i * (^uint64(0) / 10_000)}, &entry{})
		if n := len(table.tags); 5*table.used > 4*n || n > leastPlaces && 2*table.used < n {
			t.Fatalf("%d of %d places are used", table.used, n)
		}
	}
}

// A decision on a known key reads one cache line of the table.
func TestAFrontIsACacheLine(t *testing.T) {
	if n := unsafe.Sizeof(front{}); n != 64 {
		t.Errorf("a front has %d bytes", n)
	}
}

// A tag is never that of a free place.
func TestTags(t *testing.T) {
	for b := range uint64(256) {
		if (ident{b: b << 56}).tag() == 0 {
			t.Errorf("the tag of %#x is 0", b<<56)
		}
	}
}

// The short way and the long way decide and count alike: a rule of one limit goes
// the short way, and one of that limit and another that never denies the long way.
func TestTheShortWayAndTheLongWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_700_000_000, 0)
		l := core.Limit{
			Name: "l", Quota: rapid.Int64Range(0, 12).Draw(t, "quota"), Window: 10 * time.Second, Aligned: true,
			Algorithm: rapid.SampledFrom([]core.Algorithm{core.SlidingWindow, core.FixedWindow}).Draw(t, "algorithm"),
		}
		ample := core.Limit{Name: "ample", Quota: core.MaxQuota, Window: 24 * time.Hour, Aligned: true}
		s, err := New(nil, Config{Interval: -1, Log: slog.New(slog.DiscardHandler), Clock: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Open("api", []core.StoreRule{{Name: "short", Limits: []core.Limit{l}}, {Name: "long", Limits: []core.Limit{l, ample}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		ways := [2]core.Batch{}
		for i := range ways {
			ways[i].Items = []core.Item{{Rule: i, Results: make([]core.Result, i+1)}}
		}
		do := func(op core.Op) {
			for i := range ways {
				if err := storetest.Do(ctx, b, op, &ways[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				key, cost, op := []byte{byte('a' + rapid.IntRange(0, 1).Draw(t, "key"))}, rapid.Int64Range(0, 5).Draw(t, "cost"), rapid.SampledFrom([]core.Op{core.OpTake, core.OpPeek}).Draw(t, "op")
				for i := range ways {
					ways[i].Items[0].Key, ways[i].Items[0].Cost = key, cost
				}
				do(op)
				short, long := &ways[0], &ways[1]
				if short.Allowed != long.Allowed || short.Items[0].Results[0] != long.Items[0].Results[0] || short.Items[0].At != long.Items[0].At {
					t.Fatalf("%+v is the short way's answer, %+v the long way's", short, long)
				}
			},
			"refund": func(*rapid.T) {
				if ways[0].Allowed && ways[0].Items[0].Key != nil {
					do(core.OpRefund)
				}
			},
			"reset": func(*rapid.T) {
				if ways[0].Items[0].Key != nil {
					do(core.OpReset)
				}
			},
			"wait for the next window": func(*rapid.T) {
				now = time.Unix((now.Unix()/10+1)*10, 0)
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.SampledFrom([]int64{1, 1_000_000, 4_000_000, 10_000_000, 15_000_000, 21_000_000, -3_000_000, -12_000_000}).Draw(t, "microseconds")) * time.Microsecond)
			},
		})
	})
}

// A process that exchanges nothing keeps no list of what is to be exchanged: it
// would grow with every key.
func TestWithoutExchangesNothingIsMarked(t *testing.T) {
	s, err := New(nil, Config{Interval: -1, MaxKeys: shardCount, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := core.New(core.Config{Name: "api", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 10, Window: time.Hour, Aligned: true}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 * shardCount {
		hit := core.Hit{Rule: "r", Key: fmt.Sprint(i)}
		d, err := l.Take(t.Context(), 1, hit)
		if err != nil || l.Adjust(t.Context(), d, 0) != nil || l.Reset(t.Context(), hit) != nil {
			t.Fatal(err)
		}
	}
	for i := range s.table.shards {
		if n := len(s.table.shards[i].dirty); n != 0 {
			t.Fatalf("%d counters are marked", n)
		}
	}
}

// An eviction takes the counter off the list of what is to be exchanged, which
// never has more than the table, and each once.
func TestWhatIsMarkedIsInTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := idle(0)
		s.table = newTable(4*shardCount, func(int64) {})
		sh, next := &s.table.shards[0], uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(*rapid.T) {
				e := counted(1, 1)
				s.table.insert(sh, ident{a: next * (^uint64(0) / 7)}, e, 0, nil)
				sh.use(e)
				next++
			},
			"collect": func(*rapid.T) { s.collect(); s.exchange.pending = nil },
			"": func(t *rapid.T) {
				marked := 0
				for e := range sh.entries.all() {
					if e.mark != 0 {
						if marked++; sh.dirty[e.mark-1] != e {
							t.Fatalf("the entry marked as the %dth is not there", e.mark)
						}
					}
					if f := sh.entries.find(e.id); (f.rounds > 0) != (e.mark != 0) {
						t.Fatalf("%d exchanges more, and marked as %d", f.rounds, e.mark)
					}
				}
				if marked != len(sh.dirty) {
					t.Fatalf("%d are marked, %d noted", marked, len(sh.dirty))
				}
			},
		})
	})
}

// Every marked entry is collected once by an exchange, however many there are, and
// drops out after markedFor of them.
func TestEveryMarkedEntryIsCollectedOnce(t *testing.T) {
	s := idle(0)
	const many = 2*collectAtOnce + 3
	s.table = newTable(many*shardCount, func(int64) {})
	for i := range uint64(many) {
		sh, e := &s.table.shards[i%3], counted(0, 1)
		sh.entries.add(ident{a: i * (^uint64(0) / many), b: i % 3}, e)
		sh.use(e)
	}
	for round := range markedFor + 1 {
		s.collect()
		seen := map[*entry]int{}
		for _, c := range s.exchange.pending {
			for _, it := range c.items {
				seen[it.entry]++
			}
		}
		s.exchange.pending = nil
		want := many
		if round == markedFor {
			want = 0
		}
		if len(seen) != want {
			t.Errorf("exchange %d collects %d entries, want %d", round, len(seen), want)
		}
		for e, n := range seen {
			if n != 4 {
				t.Fatalf("exchange %d has %d differences of %v, want 4", round, n, e.id)
			}
		}
	}
}
