package memtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// The time until which a limit is known to deny is what its state says: after
// charges, refunds, other quotas, and steps of the clock.
func TestTheTimeUntilALimitDeniesIsThatOfItsState(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	known := map[string]int{}
	for round := range 3000 {
		now := int64(now0)
		ts := New(10, 0)
		limits := []meter.Limit{
			bucketed(1+r.Int64N(3), hour, minute*int64(1+r.IntN(6)*2)),
			logOf(1 + r.Int64N(4)),
			perDay(1 + r.Int64N(6)),
		}
		precision := limits[0].Precision
		limits[0].Window = 3 * 7 * 2 * precision
		if r.IntN(3) == 0 { // the first charge at the beginning of a bucket
			now -= now % precision
		}
		limits = limits[:1+r.IntN(3)]
		if r.IntN(2) == 0 && len(limits) > 1 {
			limits[0], limits[1] = limits[1], limits[0]
		}
		b := bind(t, ts, limits...)
		type charge struct {
			at, cost int64
			results  []meter.Result
		}
		var charged []charge
		for step := range 40 {
			var did string
			switch r.IntN(12) {
			default:
				did = "take"
				cost := r.Int64N(3)
				if results, at, allowed := b.take(now, cost); allowed && cost > 0 {
					charged = append(charged, charge{at, cost, results})
				}
			case 0, 1, 2:
				now += r.Int64N(30 * minute)
				did = "time passes"
			case 3:
				now -= r.Int64N(3 * hour)
				did = "the clock is set back"
				if r.IntN(2) == 0 { // to where a bucket begins
					now -= now % precision
				}
			case 4:
				now += r.Int64N(3 * hour)
				did = "much time passes"
			case 5:
				did = "refund"
				if len(charged) > 0 {
					i := r.IntN(len(charged))
					if c := charged[i]; b.open().Known() {
						b.refund(now, c.at, c.cost, c.results)
					}
					charged = slices.Delete(charged, i, i+1)
				}
			case 6:
				did = "other quotas"
				limits = slices.Clone(limits)
				limits[0].Quota = 1 + r.Int64N(5)
				limits[0].Capacity = limits[0].Quota
				if r.IntN(2) == 0 {
					did, charged = "other limits", nil
					if last := len(limits) - 1; limits[last].Algorithm == meter.SlidingWindow {
						limits = limits[:last]
					} else {
						limits = append(limits, perDay(1+r.Int64N(6)))
					}
				}
				next, err := b.Rebind([]Rule{{"r", limits}})
				if err != nil {
					t.Fatal(err)
				}
				b = next
			}
			p := b.open()
			if p.slot == nil {
				continue
			}
			for i := range limits {
				if p.table.deniedUntil(p.slot, i, now) > 0 {
					known[limits[i].Algorithm.String()]++
				}
			}
			if r.IntN(4) == 0 { // as a search for a key to evict does
				p.table.weigh(p.slot, now)
			}
			denied, weight := p.table.weighed(p.at, now, true)
			if !denied {
				known["not denied"]++
			}
			got := fmt.Sprintf("denied %t, weight %d", denied, weight)
			denied, weight = p.table.weighed(p.at, now, false)
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
func (t *table) weighed(i int, now int64, noted bool) (denied bool, weight int64) {
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
