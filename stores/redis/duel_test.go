package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // so that every system has the zones

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// The script does what package swapstore does, whose formats say the same: it decides
// alike, and stores the same, for the same time. So it is for several keys and limits at once, with states of
// another program's limits, values that are damaged, foreign or newer, and a clock that also goes back.
func TestTheScriptDoesAsTheStoreInGo(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds(120) {
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

const duelNames = 4 // of two rules, with two keys each

// duel runs the same operations with the script and with package swapstore. Two
// programs do them, whose limits are not the same, so that each finds states of the other's.
type duel struct {
	t           *testing.T
	r           *rand.Rand
	seed        uint64
	client      *redis.Client
	goServer    *goServer
	clock       *storetest.Clock
	rules       [2][]core.StoreRule
	bounds      [2][2]core.Counters // of each program: Go's and the script's
	names       []string
	ruleOf      []int        // of each name
	translators []translator // of the rules: with the limits of both programs
	charged     []charge
	persisted   int             // the name that was given an endless lifetime; -1: none
	waits       []time.Duration // of the last results
	wrote       bool            // the operation writes, as it is not a look or denied
	step        int
	what        string
}

// charge is a take or a charge that may be refunded.
type charge struct {
	program int
	pair    [2]*core.Batch
}

func newDuel(t *testing.T, r *rand.Rand, seed uint64, round int, client *redis.Client) *duel {
	d := &duel{t: t, r: r, seed: seed, client: client, goServer: &goServer{values: map[string]swapstore.Value{}}, clock: storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))}
	name := fmt.Sprint("d", round, "-", seed)
	for rule := range 2 {
		var limits []core.Limit
		limit := []func(*rand.Rand) core.Limit{mixedLimit, mixedLimit, plainLimit}[r.IntN(3)]
		for range 2 + r.IntN(4) {
			if l := limit(r); !slices.ContainsFunc(limits, func(o core.Limit) bool { return sameCounters(o, l) }) {
				limits = append(limits, l)
			}
		}
		d.translators = append(d.translators, newTranslator(limits))
		for program := range d.rules {
			some := slices.Clone(limits)
			r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			some = some[:1+r.IntN(len(some))]
			d.rules[program] = append(d.rules[program], core.StoreRule{Name: fmt.Sprint("r", rule), Limits: some, DenyUnreadable: r.IntN(2) == 0})
		}
		for key := range 2 {
			d.names, d.ruleOf = append(d.names, d.rules[0][rule].StoredKey(name, fmt.Append(nil, key))), append(d.ruleOf, rule)
		}
	}
	for program, rules := range d.rules {
		inGo := core.Must(swapstore.New(d.goServer, swapstore.Config{Clock: d.clock.Now, Log: slog.New(slog.DiscardHandler)}))
		script := redisstore.New(client, redisstore.Timeout(patience), redisstore.Clock(d.clock.Now), redisstore.WithoutDenialCache(), redisstore.AnotherInstance(), redisstore.Log(slog.New(slog.DiscardHandler)))
		d.bounds[program] = [2]core.Counters{core.Must(inGo.Open(name, rules)), core.Must(script.Open(name, rules))}
	}
	return d
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

// plainLimit returns a limit of a sliding or fixed window.
func plainLimit(r *rand.Rand) core.Limit {
	l := core.Limit{Quota: 1 + r.Int64N(1<<r.IntN(31)), Window: time.Duration(1+r.IntN(4)) * time.Second, Algorithm: core.Algorithm(r.IntN(2))}
	switch r.IntN(4) {
	case 0:
		l.Quota = 1 + r.Int64N(6)
	case 1:
		l.Window = core.MaxWindow - time.Duration(r.IntN(3))*time.Microsecond
	}
	l.Aligned = r.IntN(3) == 0
	return l
}

func sameCounters(a, b core.Limit) bool {
	return newTranslator([]core.Limit{a}).ids[0] == newTranslator([]core.Limit{b}).ids[0]
}

// goServer is a server in Go, which keeps values under names, and notes when they were written.
type goServer struct {
	values map[string]swapstore.Value
	writes int
}

func (s *goServer) Load(_ context.Context, names []string) (values []swapstore.Value, err error) {
	for _, name := range names {
		values = append(values, s.values[name])
	}
	return values, nil
}

func (s *goServer) Swap(_ context.Context, name string, _ swapstore.Value, value []byte, _ time.Duration) (bool, error) {
	s.set(name, value)
	return true, nil
}

func (s *goServer) Delete(_ context.Context, names []string) error {
	for _, name := range names {
		delete(s.values, name)
	}
	return nil
}

func (s *goServer) set(name string, value []byte) {
	s.writes++
	if delete(s.values, name); len(value) != 1 || value[0] != 2 { // no records are no value
		s.values[name] = swapstore.Value{Value: slices.Clone(value), Version: s.writes}
	}
}

// held is a value that the server has.
type held struct {
	value  string
	exists bool
	left   time.Duration // of its lifetime; -1: no end
}

func (d *duel) held(name string) (h held) {
	ctx := d.t.Context()
	pipe := d.client.Pipeline()
	kind, left := pipe.Type(ctx, name), pipe.PTTL(ctx, name)
	value := pipe.Get(ctx, name)
	_, _ = pipe.Exec(ctx) // a value of another type is an error of GET
	h.exists, h.left = kind.Val() != "none", left.Val()
	if h.value = value.Val(); kind.Val() == "list" {
		h.value = "\x00"
	}
	return h
}

// slack is how long the script keeps a value that is not needed any more.
const slack = time.Minute

// compare compares what the two have stored under a name, and what is left of its
// lifetime if it was written or had none.
func (d *duel) compare(program, name int, was swapstore.Value, decided bool) {
	d.t.Helper()
	now := d.clock.Now().UnixMicro()
	t := d.translators[d.ruleOf[name]]
	h := d.held(d.names[name])
	script, fits := t.value(h.value)
	if !fits {
		d.fatal(fmt.Sprintf("the script has stored %x", h.value))
	}
	if !h.exists {
		script = []byte{2}
	}
	is, found := d.goServer.values[d.names[name]]
	if !found {
		is.Value = []byte{2}
	}
	inGo, inScript := d.records(t, is.Value, now), d.records(t, script, now)
	kept := inScript
	if !h.exists { // the server may have dropped what Go keeps without end
		kept = inGo
	}
	end := int64(0)
	for _, r := range kept {
		end = max(end, r.end)
	}
	want := time.Duration(end-now)*time.Microsecond + slack
	timed := (!h.exists || h.value != "" && h.value[0] == 2) && end > 0
	if timed && want < 10*time.Second { // the server is about to drop it, or has done so
		d.forget(name)
		return
	}
	if a, b := meanings(inGo), meanings(inScript); a != b {
		d.fatal(fmt.Sprintf("key %s\nGo has     %s\nscript has %s", d.names[name], a, b))
	}
	newer := h.value != "" && h.value[0] > 2 && h.value[0] <= 15
	if decided && h.exists && h.left == -1 && !newer {
		d.fatal(fmt.Sprintf("%x is kept for ever", h.value))
	}
	// A look may write, too: if Go finds a time to put right, which may be another than the script's.
	written := is.Version != nil && is.Version != was.Version && d.wrote
	healed := decided && d.persisted == name
	for _, r := range inScript {
		if written && r.limit >= 0 && r.needed >= 0 && r.end != r.needed && d.owns(program, d.ruleOf[name], r.limit) {
			d.fatal(fmt.Sprintf("%s: it is needed until %d, and the script says %d", r.text, r.needed, r.end))
		}
		if r.text == "" || r.limit < 0 || r.needed < 0 { // how long the value is needed for it is known if it is written
			healed = false
		}
		// What another limit's clock has written before it was set back is kept for three windows at most.
		if r.limit >= 0 && r.end-now > 3*t.ids[r.limit].Window {
			healed = false
		}
	}
	if late := want - h.left; h.exists && timed && (written || healed) && (late < -7*time.Second || late > 15*time.Second) {
		d.fatal(fmt.Sprintf("key %s, %x, %q: it is kept for %v, want %v", d.names[name], h.value, meanings(inScript), h.left, want))
	}
}

func (d *duel) records(t translator, value []byte, now int64) []goRecord {
	d.t.Helper()
	all, err := t.records(value, now)
	if err != nil {
		d.fatal(err.Error())
	}
	return all
}

// meanings returns the texts of the records that mean something, or may for others.
func meanings(all []goRecord) (text string) {
	for _, r := range all {
		if r.text != "" {
			text += r.text + "\n"
		}
	}
	return text
}

// owns reports whether a program has one of the limits of a rule.
func (d *duel) owns(program, rule, limit int) bool {
	return slices.Contains(newTranslator(d.rules[program][rule].Limits).ids, d.translators[rule].ids[limit])
}

// forget takes a key's value away.
func (d *duel) forget(name int) {
	d.client.Del(d.t.Context(), d.names[name])
	delete(d.goServer.values, d.names[name])
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

// smallLimit returns a limit of so few hits and such short times that a few steps
// reach every edge of its arithmetic, or of so many hits that one costs a small
// part of a microsecond.
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
		l.Precision, l.Window = ms, l.Window*2
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
