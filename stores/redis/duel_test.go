package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // so that every system has the zones

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// The script decides as package swapstore does, which has the same arithmetic in Go: on several keys and limits at
// once, with states of another program's limits, and with a clock that also goes back.
func TestTheScriptDecidesAsTheStoreInGo(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds(120) {
		d := newDuel(t, r, fmt.Sprintf("seed %d, round %d", seed, round), fmt.Sprint("d", round, "-", seed), client)
		for range 60 {
			d.look()
			d.operate()
			d.advance()
		}
	}
}

// duel runs the same operations with the script and with package swapstore. Two
// programs do them, whose limits are not the same, so that each finds states of the other's.
type duel struct {
	t       *testing.T
	r       *rand.Rand
	round   string
	clock   *storetest.Clock
	rules   [2][]core.StoreRule
	bounds  [2][2]core.Counters // of each program: Go's and the script's
	charged []charge
	waits   []time.Duration // of the last results
}

// charge is a take that may be refunded.
type charge struct {
	program int
	pair    [2]*core.Batch
}

func newDuel(t *testing.T, r *rand.Rand, round, name string, client *redis.Client) *duel {
	d := &duel{t: t, r: r, round: round, clock: storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))}
	for rule := range 2 {
		var limits []core.Limit
		for range 2 + r.IntN(4) {
			l := mixedLimit(r)
			if !slices.ContainsFunc(limits, func(o core.Limit) bool { return meter.FromCore(o).Identity() == meter.FromCore(l).Identity() }) {
				limits = append(limits, l)
			}
		}
		for program := range d.rules {
			some := slices.Clone(limits)
			r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			d.rules[program] = append(d.rules[program], core.StoreRule{Name: fmt.Sprint("r", rule), Limits: some[:1+r.IntN(len(some))]})
		}
	}
	server, quiet := values{}, slog.New(slog.DiscardHandler)
	for program, rules := range d.rules {
		inGo := core.Must(swapstore.New(server, swapstore.Config{Clock: d.clock.Now, Log: quiet}))
		script := redisstore.New(client, redisstore.Timeout(patience), redisstore.Clock(d.clock.Now), redisstore.WithoutDenialCache(), redisstore.AnotherInstance(), redisstore.Log(quiet))
		d.bounds[program] = [2]core.Counters{core.Must(inGo.Open(name, rules)), core.Must(script.Open(name, rules))}
	}
	return d
}

// values are the values of a server in Go.
type values map[string]swapstore.Value

func (s values) Load(_ context.Context, names []string) (all []swapstore.Value, err error) {
	for _, name := range names {
		all = append(all, s[name])
	}
	return all, nil
}

func (s values) Swap(_ context.Context, name string, _ swapstore.Value, value []byte, _ time.Duration) (bool, error) {
	s[name] = swapstore.Value{Value: slices.Clone(value), Version: 1}
	return true, nil
}

func (s values) Delete(_ context.Context, names []string) error {
	for _, name := range names {
		delete(s, name)
	}
	return nil
}

// do does an operation of a program with both stores, which must decide alike.
func (d *duel) do(program int, op core.Op, pair [2]*core.Batch) {
	d.t.Helper()
	for i, b := range d.bounds[program] {
		if err := storetest.Do(d.t.Context(), b, op, pair[i]); err != nil {
			d.fatal(program, op, err.Error())
		}
	}
	// A charge of a blocked key returns the block in Redis only. The next look compares them.
	if op != core.OpCharge && !reflect.DeepEqual(pair[0], pair[1]) {
		d.fatal(program, op, fmt.Sprintf("Go     %+v\nscript %+v", pair[0], pair[1]))
	}
}

func (d *duel) fatal(program int, op core.Op, text string) {
	d.t.Helper()
	d.t.Fatalf("%s: %v by program %d, time %d\nprograms %+v\n%s", d.round, op, program, d.clock.Now().UnixMicro(), d.rules, text)
}

// batches returns the same batch for each store, with those of the four keys that are chosen.
func (d *duel) batches(
	program int, cost func() int64, chosen func() bool, quotas func(limits []core.Limit) []int64,
) (pair [2]*core.Batch) {
	var items []core.Item
	for rule, r := range d.rules[program] {
		for key := range 2 {
			if chosen() {
				items = append(items, core.Item{Rule: rule, Key: fmt.Append(nil, key), Cost: cost(), Quotas: quotas(r.Limits)})
			}
		}
	}
	d.r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	for i := range pair {
		pair[i] = &core.Batch{Items: slices.Clone(items)}
		for j := range items {
			pair[i].Items[j].Results = make([]core.Result, len(d.rules[program][items[j].Rule].Limits))
		}
	}
	return pair
}

// all returns the same batch of all keys for each store, with a cost that may be too high.
func (d *duel) all(program int) [2]*core.Batch {
	cost := min(core.MaxQuota, 1+d.r.Int64N(d.rules[program][0].Limits[0].Quota+1))
	return d.batches(program, func() int64 { return cost }, func() bool { return true }, func([]core.Limit) []int64 { return nil })
}

// look compares all states of both programs.
func (d *duel) look() {
	for program := range d.rules {
		d.do(program, core.OpPeek, d.all(program))
	}
}

// lookAt peeks with the quotas of a batch. After the clock was set back, these may put a state right.
func (d *duel) lookAt(program int, pair [2]*core.Batch) {
	looked := [2]*core.Batch{}
	for i, b := range pair {
		looked[i] = &core.Batch{Items: slices.Clone(b.Items)}
		for j := range looked[i].Items {
			looked[i].Items[j].Results = slices.Clone(b.Items[j].Results)
		}
	}
	d.do(program, core.OpPeek, looked)
}

// operate does one operation, with both stores.
func (d *duel) operate() {
	program := d.r.IntN(2)
	cost := d.r.Int64N(4)
	if d.r.IntN(4) == 0 {
		cost = d.r.Int64N(d.rules[program][0].Limits[0].Quota + 2)
	}
	someFree := func() int64 { return cost * min(1, d.r.Int64N(8)) }
	pair := d.batches(program, someFree, func() bool { return d.r.IntN(4) == 0 }, func(l []core.Limit) []int64 { return anyQuotas(d.r, l) })
	d.lookAt(program, pair)
	switch n := d.r.IntN(20); {
	case n < 4:
		op, most := core.OpCharge, []int64{core.MaxQuota, core.MaxQuota + 1, 1 << 53, math.MaxInt64}
		if n == 3 {
			op, most = core.OpGrant, most[:1]
		}
		if d.r.IntN(4) == 0 {
			cost = most[d.r.IntN(len(most))]
			for i := range pair[0].Items {
				pair[0].Items[i].Cost, pair[1].Items[i].Cost = cost, cost
			}
		}
		d.do(program, op, pair)
	case n == 4:
		pair[0].For = time.Duration(d.r.IntN(3)*1500) * time.Millisecond
		pair[1].For = pair[0].For
		d.do(program, core.OpBlock, pair)
	case n == 5:
		d.do(program, core.OpReset, pair)
	case n < 11:
		d.refund()
	default:
		d.do(program, core.OpTake, pair)
		if pair[0].Allowed {
			d.charged = append(d.charged, charge{program, pair})
		}
	}
	d.waits = d.waits[:0]
	for _, it := range pair[0].Items {
		for _, r := range it.Results {
			d.waits = append(d.waits, r.RetryAfter, r.ResetAfter, r.MoreAfter)
		}
	}
}

// refund gives back a part of what was taken, to the program that has taken it, or a hit of a
// time at an edge. Sometimes it refunds twice.
func (d *duel) refund() {
	if len(d.charged) == 0 {
		return
	}
	i := d.r.IntN(len(d.charged))
	c := d.charged[i]
	d.charged = slices.Delete(d.charged, i, i+1)
	thirds, edge := int64(d.r.IntN(4)), int64(0)
	if d.r.IntN(2) == 0 && len(c.pair[0].Items) > 0 {
		l := d.rules[c.program][c.pair[0].Items[0].Rule].Limits[0]
		edge = l.Window.Microseconds()*int64(d.r.IntN(3)-1) + int64(d.r.IntN(3)-1)
	}
	for _, b := range c.pair {
		for j := range b.Items {
			b.Items[j].Cost = min(b.Items[j].Cost, b.Items[j].Cost/3*thirds+thirds)
			b.Items[j].At += edge
		}
	}
	for range 1 + d.r.IntN(4)/3 {
		d.lookAt(c.program, c.pair)
		d.do(c.program, core.OpRefund, c.pair)
	}
}

// advance lets time pass, or sets the clock back.
func (d *duel) advance() {
	l := d.rules[0][d.r.IntN(2)].Limits[0]
	steps := []time.Duration{0, 0, time.Microsecond, l.Window / 4, l.Window / 2, l.Window - time.Microsecond, l.Window, l.Window + time.Microsecond, l.Lockout.First, l.Lockout.First + l.Window, l.Lockout.Decay, l.Precision}
	for _, wait := range d.waits {
		if wait > 0 && wait < 36_500*24*time.Hour {
			steps = append(steps, wait, wait-time.Microsecond, wait, wait-time.Microsecond)
		}
	}
	by := steps[d.r.IntN(len(steps))].Truncate(time.Microsecond)
	if d.r.IntN(8) == 0 {
		// What one of the two has not written yet, such as that a window has ended, a clock
		// that is set back would bring to light.
		for program := range d.rules {
			d.do(program, core.OpCharge, d.all(program))
		}
		by = -by * time.Duration(1+d.r.IntN(3))
	}
	// No clock is as wrong as to be before 1970. After 2060, a debt of 200 years is later than a state can be.
	if year := d.clock.Now().Add(by).Year(); year >= 1970 && year <= 2060 {
		d.clock.Advance(by)
	}
}

// mixedLimit returns a limit of any kind.
func mixedLimit(r *rand.Rand) core.Limit {
	for {
		l := smallLimit(r, core.Algorithm(r.IntN(6)))
		switch r.IntN(6) {
		case 0:
			l = anyLimit(r)
		case 2:
			l = anyCalendar(r, 1+r.Int64N(9))
		default:
			l.Window, l.Precision = l.Window*1000, l.Precision*1000
		}
		if r.IntN(16) == 0 {
			l.Quota, l.Burst = 0, 0
		}
		if l.Validate() == nil {
			return l
		}
	}
}

// anyLimit returns a valid limit from the whole range, small and large alike.
func anyLimit(r *rand.Rand) core.Limit {
	for {
		l := core.Limit{
			Quota:     1 + r.Int64N(1<<r.IntN(32)),
			Window:    core.MinWindow + time.Duration(r.Int64N(1<<r.IntN(46)))*time.Microsecond,
			Algorithm: core.Algorithm(r.IntN(5)),
		}
		switch l.Algorithm {
		case core.TokenBucket:
			l.Burst = r.Int64N(1 << r.IntN(32))
		case core.BucketedWindow:
			n := 1 + r.IntN(300)
			l.Precision = max(core.MinWindow, (l.Window / time.Duration(n)).Truncate(time.Microsecond))
			l.Window = l.Precision * time.Duration(n)
		case core.SlidingLog:
			l.Quota = min(l.Quota, 1+r.Int64N(500))
		case core.FixedWindow:
			if r.IntN(2) == 0 {
				l.Lockout.First = core.MinWindow + time.Duration(r.Int64N(1<<r.IntN(44)))*time.Microsecond
				l.Lockout.Factor = 1 + r.Int64N(1<<r.IntN(8))
				l.Lockout.Max = l.Lockout.First + time.Duration(r.Int64N(1<<r.IntN(44)))*time.Microsecond
				l.Lockout.Decay = core.MinWindow + time.Duration(r.Int64N(1<<r.IntN(44)))*time.Microsecond
				break
			}
			if r.IntN(2) == 0 {
				l = anyCalendar(r, l.Quota)
				break
			}
			l.Aligned = r.IntN(2) == 0
		default:
			l.Aligned = r.IntN(2) == 0
		}
		if l.Validate() == nil {
			return l
		}
	}
}

// anyCalendar returns a limit of the calendar of some zone.
func anyCalendar(r *rand.Rand, quota int64) core.Limit {
	zone, err := time.LoadLocation([]string{"Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kathmandu"}[r.IntN(4)])
	if err != nil {
		panic(err)
	}
	return []core.Limit{core.PerDay(quota), core.PerWeek(quota), core.PerMonth(quota)}[r.IntN(3)].In(zone)
}

// lockouts stands for fixed windows with a lockout beside the algorithms.
const lockouts core.Algorithm = 5

// smallLimit returns a limit of so few hits and such short times that a few steps reach every edge
// of its arithmetic, or of so many hits that one costs a small part of a microsecond.
func smallLimit(r *rand.Rand, a core.Algorithm) core.Limit {
	ms := time.Millisecond
	l := core.Limit{Algorithm: a, Quota: 1 + r.Int64N(6), Window: time.Duration(1+r.IntN(4)) * ms}
	switch a {
	case lockouts:
		l.Algorithm = core.FixedWindow
		l.Lockout = core.Lockout{First: time.Duration(1+r.IntN(3)) * ms, Factor: 1 + r.Int64N(3), Decay: time.Duration(1+r.IntN(6)) * ms}
		l.Lockout.Max = l.Lockout.First + time.Duration(r.IntN(20))*ms + time.Duration(r.IntN(3))*time.Microsecond
	case core.TokenBucket:
		l.Burst = r.Int64N(5)
		switch r.IntN(4) {
		case 0:
			l.Quota = 1000 * l.Window.Milliseconds() // a hit costs a microsecond
		case 1:
			l.Quota, l.Burst = core.MaxQuota-r.Int64N(3), 0
		}
	case core.BucketedWindow:
		l.Precision, l.Window = time.Duration(1+r.IntN(2))*ms, l.Window*2
	case core.FixedWindow, core.SlidingWindow:
		l.Aligned = r.IntN(2) == 0
	}
	return l
}

// anyQuotas returns quotas for one batch, nil for the limits' own.
func anyQuotas(r *rand.Rand, limits []core.Limit) (quotas []int64) {
	if r.IntN(2) == 0 {
		return nil
	}
	for _, l := range limits {
		most := int64(core.MaxQuota)
		if l.Algorithm == core.SlidingLog {
			most = core.MaxLogQuota
		}
		q := l.Quota
		switch r.IntN(8) {
		case 0:
			q = 0
		case 1:
			q = core.Unlimited
		case 2:
			q = 1 + r.Int64N(most)
		case 3, 4:
			q = min(most, 1+r.Int64N(2*l.Quota+1))
		case 5:
			q = min(most, max(1, l.Quota/2+r.Int64N(3)))
		}
		quotas = append(quotas, q)
	}
	return quotas
}
