package meter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// smallLimit returns a limit whose hits meet often.
func smallLimit(r *rand.Rand) Limit {
	l := randomLimit(r)
	if l.Quota > 10 {
		l.Quota = 1 + r.Int64N(10)
	}
	l.Capacity = l.Quota
	switch l.Algorithm {
	case TokenBucket:
		l.Capacity = 1 + r.Int64N(2*l.Quota)
	case Calendar:
		l.Window, l.Zone = []int64{Day, Week, Month}[r.IntN(3)], randomZone(r)
	case Lockout:
		l.Window = hour
		l.Waits = Waits{First: minute << r.IntN(3), Longest: hour * r.Int64N(3) / 2, Factor: 1 + r.Int64N(4), Decay: []int64{minute, hour, 3 * hour}[r.IntN(3)]}
		l.Waits.Longest = max(l.Waits.Longest, l.Waits.First)
	}
	return l
}

// walk takes random steps with a meter and the plain model, and calls check after each.
func walk(t *testing.T, rounds int, check func(fail func(string, ...any), m *Meter, p *plain, w []uint64, now int64, r *rand.Rand)) {
	t.Helper()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		l := smallLimit(r)
		m, p := New(l), newPlain(l)
		var w []uint64
		if !m.Grows() {
			w = make([]uint64, m.FixedWords())
		}
		now := int64(now0)
		type charge struct{ at, full, n int64 }
		var charges []charge
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, round %d, %+v, state %v at %d, hits %v: %s", seed, round, l, w, now, p.hits, fmt.Sprintf(format, args...))
		}
		for range 1 + r.IntN(14) {
			switch r.IntN(4) {
			case 0:
				now += r.Int64N(m.Window / 4)
			case 1:
				now += r.Int64N(2*m.Window + 2)
			case 2: // to just where something changes
				if d := m.Wait(w, now, 1+r.Int64N(m.Capacity)); d != Forever {
					now += max(0, d-r.Int64N(2))
				}
			}
			m.Advance(w, now)
			switch cost := 1 + r.Int64N(m.Capacity); {
			case r.IntN(4) == 0 && len(charges) > 0:
				i := r.IntN(len(charges))
				c := charges[i]
				charges = slices.Delete(charges, i, i+1) // a charge is refunded once
				n := 1 + r.Int64N(c.n)
				m.Refund(w, now, c.at, c.full-c.at, n)
				p.refund(now, c.at, c.full, n)
			case m.Allows(w, now, cost):
				w = m.Room(w, cost)
				m.Charge(new(Result), w, now, cost)
				p.charge(now, cost)
				if !slices.ContainsFunc(charges, func(c charge) bool { return c.at == now }) {
					charges = append(charges, charge{now, now + resetOf(&m, w, now), cost})
				}
			}
			check(fail, &m, p, w, now, r)
		}
	}
}

// A meter has left what the definition of its algorithm has, now and later.
func TestTheMeterFollowsTheDefinition(t *testing.T) {
	walk(t, 6000, func(fail func(string, ...any), m *Meter, p *plain, w []uint64, now int64, r *rand.Rand) {
		for _, later := range []int64{0, r.Int64N(m.Window), r.Int64N(3 * m.Window)} {
			then := slices.Clone(w)
			m.Advance(then, now+later)
			if got, want := m.Remaining(then, now+later), p.remaining(now+later); got != want {
				fail("%d µs later %d remain, want %d", later, got, want)
			}
		}
	})
}

// A cost is admitted when its wait is over, and not a microsecond before.
func TestAWaitEndsWhenTheCostIsAdmitted(t *testing.T) {
	walk(t, 4000, func(fail func(string, ...any), m *Meter, p *plain, w []uint64, now int64, r *rand.Rand) {
		cost := 1 + r.Int64N(m.Capacity)
		wait := m.Wait(w, now, cost)
		if wait == 0 {
			if p.remaining(now) < cost {
				fail("no wait for %d, of which %d remain", cost, p.remaining(now))
			}
			return
		}
		if before := p.remaining(now + wait - 1); before >= cost {
			fail("after a wait of %d µs for %d, less one, %d remain", wait, cost, before)
		}
		if after := p.remaining(now + wait); after < cost {
			fail("after a wait of %d µs for %d, %d remain", wait, cost, after)
		}
	})
}

// What a charge leaves is what the state has left afterwards, also above the quota and after the quota
// has been lowered. To decide charges nothing.
func TestAChargeLeavesWhatTheStateHas(t *testing.T) {
	walk(t, 4000, func(fail func(string, ...any), m *Meter, p *plain, w []uint64, now int64, r *rand.Rand) {
		lower := p.Limit
		if lower.Quota = r.Int64N(lower.Quota + 1); lower.Algorithm == Lockout {
			lower.Quota++
		}
		lower.Capacity = min(lower.Capacity, lower.Quota)
		other := New(lower)
		for _, m := range []*Meter{m, &other} {
			cost := r.Int64N(m.Capacity + 2)
			at := now + r.Int64N(2*m.Window) - m.Window/3
			state := m.Room(slices.Clone(w), cost)
			var a, b Result
			first, _ := m.Decide(&a, state, at, cost)
			second, _ := m.Decide(&b, state, at, cost)
			if a != b || first != second || a.Allowed != (cost <= a.Remaining) || cost == 0 && !a.Allowed {
				fail("a decision on %d at %d: %+v at %d, and another one: %+v at %d", cost, at, a, first, b, second)
			}
			m.Charge(&a, state, at, cost)
			if left := m.Remaining(state, at); a.Remaining != left || !a.Allowed {
				fail("a charge of %d at %d to %d: %+v, and %d are left", cost, at, b.Remaining, a, left)
			}
		}
	})
}

// The bytes of a state are read as the same state.
func TestAStateIsReadAgain(t *testing.T) {
	walk(t, 4000, func(fail func(string, ...any), m *Meter, _ *plain, w []uint64, now int64, r *rand.Rand) {
		text := m.AppendState([]byte("x"), w)
		rd := &Reader{Rest: append(text[1:len(text):len(text)], "rest"...)}
		again := m.ReadState(rd)
		if rd.Bad || string(rd.Rest) != "rest" || string(text[:1]) != "x" {
			fail("%x is read with %q left, bad: %v", text, rd.Rest, rd.Bad)
		}
		for _, later := range []int64{0, r.Int64N(m.Window), m.Window, r.Int64N(2 * m.Window)} {
			a, b := slices.Clone(w), slices.Clone(again)
			m.Advance(a, now+later)
			m.Advance(b, now+later)
			la, ra, ma := m.Outlook(a, now+later)
			if lb, rb, mb := m.Outlook(b, now+later); la != lb || ra != rb || ma != mb {
				fail("%x is read as %v: %d µs later %d left for %d, %d, and in the state itself %d, %d, %d", text, again, later, lb, rb, mb, la, ra, ma)
			}
		}
		for n := range len(text) - 1 { // what is cut is no state
			if rd := (&Reader{Rest: text[1 : 1+n]}); true {
				if m.ReadState(rd); !rd.Bad {
					fail("%x is taken", text[1:1+n])
				}
			}
		}
	})
}

// The shortest log has a byte for each hit.
func TestALogOfOneByteAHitIsRead(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: hour, Algorithm: SlidingLog})
	w := m.Room(nil, 3)
	m.Charge(new(Result), w, 1, 2)
	m.Charge(new(Result), w, 2, 1)
	text := m.AppendState(nil, w)
	r := &Reader{Rest: text}
	if again := m.ReadState(r); len(text) != 4 || r.Bad || m.Remaining(again, 2) != 2 {
		t.Errorf("%x is read as %v, bad: %v", text, again, r.Bad)
	}
}

// When a state expires it means the same as none, and it is kept no longer than
// the lifetime of the limit says.
func TestAnExpiredStateMeansNothing(t *testing.T) {
	walk(t, 4000, func(fail func(string, ...any), m *Meter, p *plain, w []uint64, now int64, _ *rand.Rand) {
		end := m.Expiry(w)
		if len(p.hits) == 0 {
			return
		}
		if !p.blank(max(now, end)) {
			fail("hits count at the expiry %d", end)
		}
		if end-now > m.Lifetime() {
			fail("it expires in %d µs, and the lifetime is %d", end-now, m.Lifetime())
		}
		if end <= now && !p.blank(now) {
			fail("hits count at %d, and the state expires at %d", now, end)
		}
	})
}

// Lifetimes and worst cases are reached.
func TestPromisesAreReached(t *testing.T) {
	for _, c := range []struct {
		Limit
		life, most int64
	}{
		{Limit{Quota: 5, Window: hour}, 2 * hour, 10},
		{Limit{Quota: 5, Window: hour, Algorithm: FixedWindow}, hour, 10},
		{Limit{Quota: 5, Window: hour, Algorithm: SlidingLog}, hour, 5},
		{Limit{Quota: 5, Window: hour, Algorithm: BucketedWindow, Precision: minute}, hour + minute, 5},
		{Limit{Quota: 5, Capacity: 10, Window: hour, Algorithm: TokenBucket}, 2*hour + 1, 15},
		{Limit{Quota: 3, Capacity: 1, Window: 10, Algorithm: TokenBucket}, 5, 4},
		{Limit{Quota: 0, Capacity: 0, Window: hour, Algorithm: TokenBucket}, 0, 0},
		{Limit{Quota: 5, Window: Week, Algorithm: Calendar, Zone: time.UTC}, Week + 27*hour, 10},
		// waits of 10, 20 and 30 minutes: used up at 0, 10 and 30, and again at 60
		{Limit{Quota: 5, Window: hour, Algorithm: Lockout, Waits: Waits{First: 10 * minute, Factor: 2, Longest: 30 * minute, Decay: hour}}, 30*minute + 3*hour, 20},
		{Limit{Quota: 5, Window: hour + 1, Algorithm: Lockout, Waits: Waits{First: 10 * minute, Factor: 2, Longest: 30 * minute, Decay: hour}}, 30*minute + 3*hour, 25},
		{Limit{Quota: 5, Window: hour, Algorithm: Lockout, Waits: Waits{First: hour, Factor: 2, Longest: hour, Decay: 1}}, hour + 1, 10},
		{Limit{Quota: 5, Window: hour, Algorithm: Lockout, Waits: Waits{First: minute, Factor: 1, Longest: minute, Decay: 1}}, hour, 305},
		{Limit{Quota: 5, Window: hour + 1, Algorithm: Lockout, Waits: Waits{First: minute, Factor: 1, Longest: minute, Decay: 1}}, hour + 1, 310},
	} {
		c.Capacity = max(c.Capacity, c.Quota)
		if c.Algorithm == TokenBucket && c.Quota == 3 {
			c.Capacity = 1
		}
		m := New(c.Limit)
		if life, most := m.Lifetime(), m.WorstCase(); life != c.life || most != c.most {
			t.Errorf("%+v: %d µs and %d hits, want %d and %d", c.Limit, life, most, c.life, c.most)
		}
	}
}
