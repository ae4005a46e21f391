package redisstore_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

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

// plainLimit returns a limit that the script has a short way for.
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
