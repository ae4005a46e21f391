package meter

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func resetOf(m *Meter, w []uint64, now int64) int64 {
	_, reset, _ := m.Outlook(w, now)
	return reset
}

// The waits that are reported are those after which the limit has so many left, and not a
// microsecond before, of every algorithm, also after the quota has been changed and for a clock that
// is behind the state.
func TestWaitsEndWhenSoManyAreLeft(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]int{}
	for round := range 20_000 {
		limit := randomLimit(r)
		m := New(limit)
		var w []uint64
		if !m.Grows() {
			w = make([]uint64, m.FixedWords())
		}
		now := int64(now0)
		for range r.IntN(8) {
			switch now += r.Int64N(1 + m.Window*int64(1+r.IntN(3))/2); r.IntN(12) {
			case 0:
				now -= m.Window / 3
			case 1: // another quota from here on
				limit.Quota = min(r.Int64N(2*limit.Quota+1), MaxCount)
				limit.Capacity = limit.Quota
				m = New(limit)
			}
			m.Advance(w, now)
			cost := 1 + r.Int64N(max(1, m.Capacity))
			if r.IntN(2) == 0 {
				cost = 1
			}
			if m.Allows(w, now, cost) {
				w = m.Room(w, cost)
				m.Charge(new(Result), w, now, cost)
			}
		}
		m.Advance(w, now)
		left, reset, more := m.Outlook(w, now)
		fail := func(what string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, round %d, %+v, state %v at %d: %d left, reset %d, more %d: %s", seed, round, limit, w, now, left, reset, more, fmt.Sprintf(what, args...))
		}
		least := func(wait, want int64) {
			t.Helper()
			for _, d := range []int64{wait, wait - 1} {
				then := slices.Clone(w)
				if m.Advance(then, now+d); m.Allows(then, now+d, want) != (d == wait) {
					fail("%d left after %d µs, and the wait for %d is %d", m.Remaining(then, now+d), d, want, wait)
				}
			}
		}
		kind := "some left"
		switch {
		case limit.Quota == 0:
			kind = "quota 0"
		case left == m.Capacity:
			kind = "all left"
		case left == 0:
			kind = "none left"
		}
		if left == m.Capacity {
			if reset != 0 || more != 0 {
				fail("want no waits")
			}
		} else {
			least(reset, m.Capacity)
			least(more, left+1)
			cost := left + 1 + r.Int64N(m.Capacity-left)
			least(m.Wait(w, now, cost), cost)
		}
		seen[fmt.Sprint(m.Algorithm, " ", kind)]++
		for cost, want := range map[int64]int64{0: 0, left: 0, m.Capacity + 1: Forever} {
			if got := m.Wait(w, now, cost); got != want {
				fail("the wait for %d is %d", cost, got)
			}
		}
	}
	for a := range Algorithms {
		for _, kind := range []string{"some left", "none left", "all left", "quota 0"} {
			if name := fmt.Sprint(a, " ", kind); seen[name] == 0 && (a != Lockout || kind != "quota 0") {
				t.Errorf("seed %d: no state of %s has been met", seed, name)
			}
		}
	}
}

func randomLimit(r *rand.Rand) Limit {
	l := Limit{Quota: 1 + r.Int64N(6), Window: hour, Algorithm: Algorithm(r.IntN(int(Algorithms)))}
	if r.IntN(3) == 0 {
		l.Window = minWindow + r.Int64N(1000)
	}
	if r.IntN(4) == 0 && l.Algorithm != SlidingLog {
		l.Quota = 1 + r.Int64N(MaxCount)
		l.Window = maxWindow
	}
	l.Capacity = l.Quota
	switch l.Algorithm {
	case BucketedWindow:
		l.Precision = l.Window / []int64{1, 2, 5, 6}[r.IntN(4)]
		l.Window -= l.Window % l.Precision
	case TokenBucket:
		if r.IntN(2) == 0 {
			l.Capacity = 1 + r.Int64N(2*l.Quota)
		}
	case Lockout:
		l.Waits = Waits{First: minute, Longest: hour, Factor: 2, Decay: hour}
	case FixedWindow, SlidingWindow:
		l.Aligned = r.IntN(2) == 0
	case Calendar:
		l.Window, l.Zone = []int64{Day, Week, Month}[r.IntN(3)], randomZone(r)
	}
	return l
}

// Of a charge that has been paid off in part, a refund gives back the rest, and
// nothing of what others have charged since.
func TestATokenBucketRefundsWhatIsStillOwed(t *testing.T) {
	m := New(Limit{Quota: 10, Capacity: 10, Window: 10 * second, Algorithm: TokenBucket})
	for _, c := range []struct{ after, then, back, want int64 }{
		{0, 0, 5, 10},          // nothing is paid off yet
		{0, 0, 2, 7},           // a part of the charge
		{3 * second, 5, 5, 5},  // two hits are still owed: 2 of 7
		{4 * second, 5, 5, 5},  // one
		{5 * second, 5, 5, 5},  // none
		{9 * second, 10, 5, 0}, // long ago
		{3 * second, 0, 5, 10},
	} {
		w := make([]uint64, cellWords)
		m.Charge(new(Result), w, now0, 5)
		reset := resetOf(&m, w, now0)
		now := now0 + c.after
		m.Advance(w, now)
		m.Charge(new(Result), w, now, c.then)
		m.Refund(w, now, now0, reset, c.back)
		if got := m.Remaining(w, now); got != c.want {
			t.Errorf("%d s after a charge of 5, and another one of %d, a refund of %d leaves %d, want %d", c.after/second, c.then, c.back, got, c.want)
		}
	}
}

// The burst at another quota is rounded down, so that a debt is far sooner than at the own quota.
func TestADebtAtAnotherQuotaWithARoundedBurst(t *testing.T) {
	m := New(Limit{Quota: 2, Capacity: 3, Window: hour, Algorithm: TokenBucket})
	for _, row := range []struct {
		quota uint32
		ahead int64
		far   bool
	}{
		{3, hour + 4*hour/3 - 1, false}, {3, hour + 4*hour/3, true}, // a burst of 4.5 hits is one of 4
		{2, hour + 3*hour/2 - 1, false}, {2, hour + 3*hour/2, true},
	} {
		w := make([]uint64, cellWords)
		cell{t: now0 + row.ahead, b: row.quota}.store(w)
		if _, got := m.Advance(w, now0); got != row.far {
			t.Errorf("at a quota of %d, %d µs ahead: far %v, want %v", row.quota, row.ahead, got, row.far)
		}
	}
}

// A burst below the quota makes debts that less than two windows pay off, and a charge that was a window
// ahead of the clock is far all the same.
func TestAFarDebtOfASmallBurst(t *testing.T) {
	m := New(Limit{Quota: 10, Capacity: 1, Window: hour, Algorithm: TokenBucket})
	for ahead, want := range map[int64]bool{hour + hour/10 - 1: false, hour + hour/10: true} {
		w := make([]uint64, cellWords)
		cell{t: now0 + ahead, b: 10}.store(w)
		if _, got := m.Advance(w, now0); got != want {
			t.Errorf("%d µs ahead: far %v, want %v", ahead, got, want)
		}
	}
}

// A quota of 0 has nothing left and changes no debt, not even one that only a step of the clock explains.
func TestAQuotaOf0ForgetsNoDebt(t *testing.T) {
	m := New(Limit{Quota: 10, Capacity: 10, Window: second, Algorithm: TokenBucket})
	none := m.With(0)
	for _, before := range []cell{{t: now0 + 1, b: 10}, {t: maxTime, b: MaxCount}} {
		w := make([]uint64, cellWords)
		before.store(w)
		var r Result
		_, far := none.Decide(&r, w, now0, 1)
		none.Report(&r, w, now0, 1)
		if far || r != (Result{RetryAfter: Never}) || loadCell(w) != before {
			t.Errorf("%+v: far %v, %+v, and the debt becomes %+v", before, far, r, loadCell(w))
		}
	}
}

// A refund and a grant bring the state to their time before they change it.
func TestARefundOfAPaidDebt(t *testing.T) {
	m := New(Limit{Quota: 10, Capacity: 10, Window: hour, Algorithm: TokenBucket})
	for name, back := range map[string]func(w []uint64, now int64){
		"refund": func(w []uint64, now int64) { m.Refund(w, now, now, hour, 1) },
		"grant":  func(w []uint64, now int64) { m.Grant(w, now, 1) },
	} {
		w := make([]uint64, cellWords)
		m.Charge(new(Result), w, now0, 1)
		if back(w, now0+hour); loadCell(w) != (cell{}) {
			t.Errorf("a %s leaves %+v of a debt that has been paid off", name, loadCell(w))
		}
	}
}

// A debt at another quota is far if it is a window ahead of the burst at that quota.
func TestADebtAtAnotherQuotaThatIsFar(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: hour, Algorithm: TokenBucket})
	for ahead, want := range map[int64]bool{hour: false, 2*hour - 1: false, 2 * hour: true, 3 * hour: true} {
		w := make([]uint64, cellWords)
		cell{t: now0 + ahead, b: 50}.store(w) // 50 an hour, and a burst of 50
		if _, got := m.Advance(w, now0); got != want {
			t.Errorf("%d µs ahead: far %v, want %v", ahead, got, want)
		}
	}
}

func TestWideArithmeticIsExact(t *testing.T) {
	if got := fits(1<<30-1, 1<<30, 1<<34); got != 1<<34-1 { // 2⁶⁴−1 by 2³⁰
		t.Errorf("fits is %d", got)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	number := func() int64 { return r.Int64() >> r.IntN(63) }
	toBig := func(x wide) *big.Int {
		n := new(big.Int).SetUint64(x.hi)
		return n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(x.lo))
	}
	for range 100_000 {
		a, b, c := number(), number(), number()
		x, y := wideMul(a, b), wideMul(c, c)
		if got, want := toBig(x), new(big.Int).Mul(big.NewInt(a), big.NewInt(b)); got.Cmp(want) != 0 {
			t.Fatalf("%d × %d = %v", a, b, got)
		}
		if got, want := toBig(x.add(y)), new(big.Int).Add(toBig(x), toBig(y)); got.Cmp(want) != 0 {
			t.Fatalf("%v + %v = %v", x, y, got)
		}
		if want := new(big.Int).Sub(toBig(x), toBig(y)); want.Sign() >= 0 && toBig(x.sub(y)).Cmp(want) != 0 || want.Sign() < 0 && x.sub(y) != (wide{}) {
			t.Fatalf("%v − %v = %v", x, y, x.sub(y))
		}
		if x.less(y) != (toBig(x).Cmp(toBig(y)) < 0) {
			t.Fatalf("%v < %v", x, y)
		}
		if d := max(b, c) + 1; d > 0 && x.hi < uint64(d) {
			q, rem := new(big.Int).QuoRem(toBig(x), big.NewInt(d), new(big.Int))
			if q.IsInt64() {
				if gq, gr := x.div(d); gq != q.Int64() || gr != rem.Int64() {
					t.Fatalf("%v / %d = %d, rest %d", x, d, gq, gr)
				}
			}
		}
		if d := c>>1 + 1; floorDiv(-a, d) != new(big.Int).Div(big.NewInt(-a), big.NewInt(d)).Int64() {
			t.Fatalf("%d / %d = %d", -a, d, floorDiv(-a, d))
		}
	}
}

// A clock that is behind a state by less than one window decides at the state's time, counts waits
// from its own, charges at the state's time, and changes nothing by looking.
func TestADecisionIsMadeAtTheStoredTime(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const start = now0
	meters := everyAlgorithm(hour)
	for round := range 2000 {
		m := &meters[round%len(meters)]
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, round %d, %v: %s", seed, round, m.Algorithm, fmt.Sprintf(format, args...))
		}
		var w []uint64
		if !m.Grows() {
			w = make([]uint64, m.FixedWords())
		}
		now := int64(start)
		charge := func(w []uint64, now int64) []uint64 {
			w = m.Room(w, 1)
			m.Charge(new(Result), w, now, 1)
			return w
		}
		for range 1 + r.IntN(6) {
			now += r.Int64N(m.Window * 2 / 3)
			m.Advance(w, now)
			if m.Allows(w, now, 1) {
				w = charge(w, now)
			}
		}
		stored := now
		if m.Algorithm != TokenBucket {
			stored = timeOf(m, w)
		}
		latest := stored // of the times in the state
		if m.Algorithm == Lockout {
			c := loadLockout(w)
			latest = max(stored, c.until-c.last(m))
		}
		if latest-stored >= m.Window-1 {
			continue
		}
		behind := stored - 1 - r.Int64N(m.Window-1-(latest-stored))
		there, here := slices.Clone(w), slices.Clone(w)
		thereAt, _ := m.Advance(there, stored)
		hereAt, far := m.Advance(here, behind)
		if far {
			fail("%d µs ahead is far", stored-behind)
		}
		if m.Algorithm != TokenBucket { // whose debt is only larger
			if a, b := m.Remaining(there, stored), m.Remaining(here, behind); a != b {
				fail("%d remain, and %d at the stored time", b, a)
			}
			for cost := range m.Capacity {
				if a, b := m.Wait(there, stored, cost+1), m.Wait(here, behind, cost+1); a > 0 && a+stored != b+behind || (a == 0) != (b == 0) {
					fail("cost %d: the wait is %d, and %d at the stored time, %d µs later", cost+1, b, a, stored-behind)
				}
			}
			if thereAt != hereAt {
				fail("decides at %d, and at %d at the stored time", hereAt, thereAt)
			}
			if a, b := charge(there, stored), charge(here, behind); fmt.Sprint(a) != fmt.Sprint(b) {
				fail("a charge makes %v, and %v at the stored time", b, a)
			}
		}
		m.Advance(here, stored)
		if a, b := m.Remaining(there, stored), m.Remaining(here, stored); a != b {
			fail("%d remain after a look by a clock that is behind, and %d before", b, a)
		}
		if _, far := m.Advance(w, stored-m.Window); m.Algorithm != Lockout && m.Algorithm != TokenBucket && !far {
			fail("a whole window ahead is not far")
		}
	}
}

// The whole burst, and twice the burst, which is the most that any charges leave, is owed in full
// if it was charged less than a window ahead. A whole window ahead, no more than the burst
// is owed. In 64 bits and in 128.
func TestAFullBucketAheadOfTheClock(t *testing.T) {
	const charged = now0
	for _, charges := range []int{1, 3} {
		for _, l := range []Limit{
			{Quota: 5, Capacity: 5, Window: hour, Algorithm: TokenBucket},
			{Quota: 5, Capacity: 15, Window: hour, Algorithm: TokenBucket},
			{Quota: MaxCount, Capacity: MaxCount, Window: maxWindow, Algorithm: TokenBucket},
		} {
			m := New(l)
			full, burst := make([]uint64, cellWords), make([]uint64, cellWords)
			for range charges {
				m.Charge(new(Result), full, charged, m.Capacity)
			}
			m.Charge(new(Result), burst, charged, m.Capacity)
			for _, ahead := range []int64{1, m.Window / 2, m.Window - 1} {
				w := slices.Clone(full)
				if _, far := m.Advance(w, charged-ahead); far || !slices.Equal(w, full) {
					t.Errorf("%v: a debt %d µs ahead is moved back", l, ahead)
				}
			}
			w := slices.Clone(full)
			if _, far := m.Advance(w, charged-m.Window); !far || resetOf(&m, w, charged-m.Window) != resetOf(&m, burst, charged) {
				t.Errorf("%v: a debt a window ahead is owed for %d µs, want %d", l, resetOf(&m, w, charged-m.Window), resetOf(&m, burst, charged))
			}
		}
	}
}

// Buckets without hits follow the clock, also back.
func TestEmptyBucketsFollowTheClock(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: hour, Precision: minute, Algorithm: BucketedWindow})
	w := m.Room(nil, 1)
	const later, before = now0 + 10*minute, now0 - 10*minute
	for _, at := range []int64{now0, later} {
		m.Advance(w, at)
		m.Charge(new(Result), w, at, 1)
	}
	for _, at := range []int64{now0, later} {
		m.Refund(w, later, at, 0, 1)
	}
	at, _ := m.Advance(w, before)
	m.Charge(new(Result), w, before, 1)
	if got, want := m.Expiry(w), floorTo(before, minute)+hour+minute; got != want || at != before {
		t.Errorf("a hit of the time %d counts until %d, want %d", before, got, want)
	}
}
