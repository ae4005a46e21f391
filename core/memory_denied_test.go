package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The time until which a limit is known to deny is what its state says: after
// charges, refunds, other quotas, and steps of the clock.
func TestTheTimeUntilALimitDeniesIsThatOfItsState(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	known := map[string]int{}
	for round := range 3000 {
		now := time.UnixMicro(codecNow)
		m := Must(NewMemory(MemoryConfig{MaxKeys: 10, Clock: func() time.Time { return now }}))
		limits := []Limit{
			{Quota: 1 + r.Int64N(3), Window: time.Hour, Algorithm: BucketedWindow, Precision: time.Minute * time.Duration(1+r.IntN(6)*2)},
			{Quota: 1 + r.Int64N(4), Window: time.Hour, Algorithm: SlidingLog},
			PerDay(1 + r.Int64N(6)),
		}
		limits[0].Window = 3 * 7 * 2 * limits[0].Precision
		if r.IntN(3) == 0 { // the first charge at the beginning of a bucket
			now = now.Truncate(limits[0].Precision)
		}
		limits = limits[:1+r.IntN(3)]
		if r.IntN(2) == 0 && len(limits) > 1 {
			limits[0], limits[1] = limits[1], limits[0]
		}
		b := Must(m.Bind("l", []StoreRule{{Name: "r", Limits: limits}})).(*memoryBound)
		batch := func(cost int64) *Batch {
			return &Batch{Items: []Item{{Key: []byte("k"), Cost: cost, Results: make([]Result, len(limits))}}}
		}
		var charged []*Batch
		for step := range 40 {
			var err error
			var did string
			switch r.IntN(12) {
			default:
				did = "take"
				one := batch(r.Int64N(3))
				if err = b.Take(t.Context(), one); one.Allowed && one.Items[0].Cost > 0 {
					charged = append(charged, one)
				}
			case 0, 1, 2:
				now = now.Add(time.Duration(r.Int64N(int64(30 * time.Minute))))
				did = "time passes"
			case 3:
				now = now.Add(-time.Duration(r.Int64N(int64(3 * time.Hour))))
				did = "the clock is set back"
				if r.IntN(2) == 0 { // to where a bucket begins
					now = now.Truncate(limits[0].Precision)
				}
			case 4:
				now = now.Add(time.Duration(r.Int64N(int64(3 * time.Hour))))
				did = "much time passes"
			case 5:
				did = "refund"
				if len(charged) > 0 {
					i := r.IntN(len(charged))
					err = b.Refund(t.Context(), charged[i])
					charged = append(charged[:i], charged[i+1:]...)
				}
			case 6:
				did = "other quotas"
				limits = slices.Clone(limits)
				limits[0].Quota = 1 + r.Int64N(5)
				if r.IntN(2) == 0 {
					did, charged = "other limits", nil
					if last := len(limits) - 1; limits[last].Algorithm == SlidingWindow {
						limits = limits[:last]
					} else {
						limits = append(limits, PerDay(1+r.Int64N(6)))
					}
				}
				var next Bound
				if next, err = b.Rebind([]StoreRule{{Name: "r", Limits: limits}}); err == nil {
					b = next.(*memoryBound)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			p := b.place(&batch(0).Items[0])
			p.table = m.shards[p.shard].tableFor(p.layout)
			if p.find(); p.slot == nil {
				continue
			}
			for i := range limits {
				if p.table.deniedUntil(p.slot, i, now.UnixMicro()) > 0 {
					known[limits[i].Algorithm.String()]++
				}
			}
			if r.IntN(4) == 0 { // as a search for a key to evict does
				p.table.weigh(p.slot, now.UnixMicro())
			}
			denied, weight := p.table.weighed(p.at, now.UnixMicro(), true)
			if !denied {
				known["not denied"]++
			}
			got := fmt.Sprintf("denied %t, weight %d", denied, weight)
			denied, weight = p.table.weighed(p.at, now.UnixMicro(), false)
			want := fmt.Sprintf("denied %t, weight %d", denied, weight)
			if got != want {
				t.Fatalf("seed %d, round %d, step %d, after %s: %v: %s, and by the states %s", seed, round, step, did, limits, got, want)
			}
		}
	}
	for _, what := range []string{"bucketed_window", "sliding_log", "not denied"} {
		if known[what] == 0 {
			t.Errorf("seed %d: %s: never met", seed, what)
		}
	}
}

// weighed is weigh of a slot, which stays as it is, with or without what is noted
// of denials.
func (t *memoryTable) weighed(i int, now int64, noted bool) (denied bool, weight int64) {
	slot := slices.Clone(t.slot(i))
	var blocks [][]uint64
	for j := range t.layout.meters {
		blocks = append(blocks, slices.Clone(t.state(t.slot(i), j)))
	}
	if !noted {
		t.forgetDenied(t.slot(i))
	}
	denied, weight = t.weigh(t.slot(i), now)
	copy(t.slot(i), slot)
	for j := range blocks {
		copy(t.state(t.slot(i), j), blocks[j])
	}
	return denied, weight
}
