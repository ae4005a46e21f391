package redisstore_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// way is the script as it is, or without its short way.
type way struct {
	*redis.Script
	key string
}

func (w way) run(t *testing.T, client redis.Scripter, args []any) string {
	t.Helper()
	reply, err := w.Run(context.Background(), client, []string{w.key}, args...).Text()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// anyWindows returns up to five sliding or fixed windows, or now and then another
// limit among them, as a rule may have them.
func anyWindows(r *rand.Rand) (limits []core.Limit) {
	for n := 1 + r.IntN(5); len(limits) < n; {
		l := anyLimit(r)
		if other := l.Algorithm > core.FixedWindow || l.Lockout != (core.Lockout{}); other && r.IntN(20) > 0 {
			continue
		}
		same := func(o core.Limit) bool {
			return o.Algorithm == l.Algorithm && o.Window == l.Window && o.Precision == l.Precision && o.Aligned == l.Aligned
		}
		if !slices.ContainsFunc(limits, same) {
			limits = append(limits, l)
		}
	}
	return limits
}

// damaged returns a value with something wrong.
func damaged(r *rand.Rand, v string) string {
	b := []byte(v)
	switch n := r.IntN(7); {
	case len(b) == 0 || n == 0:
		return v + string(rune(r.IntN(128)))
	case n == 1:
		return v[:r.IntN(len(v))]
	case n == 2 && len(b) > 64: // the records in another order
		return v[:1] + v[33:65] + v[1:33] + v[65:]
	case n == 3 && len(b) > 32: // without its first record
		return v[:1] + v[33:]
	case n == 4 && len(b) > 32: // a count that is too large
		b[28+4*r.IntN(2)] |= 0x80
		return string(b)
	default:
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return string(b)
	}
}

// The short way answers and stores the same as the long one, to the byte, whatever
// the limits, the costs, the times and the stored value are.
func TestTheShortWayAgreesWithTheLongWay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, ReadTimeout: patience})
	defer client.Close() //nolint:errcheck // the test is over
	const condition = "verb == TAKE and items or 0"
	if strings.Count(redisstore.ScriptText(), condition) != 1 {
		t.Fatal("the short way is not found")
	}
	short := way{redis.NewScript(redisstore.ScriptText()), "fg1:short"}
	long := way{redis.NewScript(strings.Replace(redisstore.ScriptText(), condition, "0", 1)), "fg1:long"}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	admitted := 0
	for round := range rounds(200) {
		limits := anyWindows(r)
		if round%4 == 0 { // weights of more than 53 bits
			limits[0] = core.Limit{Quota: core.MaxQuota, Window: core.MaxWindow - time.Duration(r.Int64N(1e15)).Truncate(time.Microsecond)}
		}
		deny := r.IntN(2) == 0
		now, most := int64(1_764_000_123_456_789), limits[0].Quota
		var window time.Duration
		for _, l := range limits {
			window, most = max(window, l.Window), min(most, l.Quota)
		}
		client.Del(ctx, short.key, long.key)
		for step := range 20 {
			cost := r.Int64N(most/2 + 2)
			if r.IntN(10) == 0 {
				cost = r.Int64N(core.MaxQuota)
			}
			if r.IntN(8) == 0 {
				value := damaged(r, client.Get(ctx, short.key).Val())
				for _, w := range []way{short, long} {
					client.Set(ctx, w.key, value, 0)
				}
			}
			peek := r.IntN(10) == 0
			args := redisstore.Ask(peek, now, limits, deny, cost)
			a, b := short.run(t, client, args), long.run(t, client, args)
			was := func(w way) string { return client.Get(ctx, w.key).Val() }
			if a != b || was(short) != was(long) {
				t.Fatalf("seed %d, round %d, step %d, limits %v, cost %d:\nanswers %x and %x\nstored  %x and %x", seed, round, step, limits, cost, a, b, was(short), was(long))
			}
			if x, y := client.PTTL(ctx, short.key).Val(), client.PTTL(ctx, long.key).Val(); (x - y).Abs() > time.Second {
				t.Fatalf("seed %d, round %d, step %d, limits %v: kept for %v and %v", seed, round, step, limits, x, y)
			}
			if !peek && cost > 0 && a[8] == 0 { // made, and no limit makes it wait
				admitted++
			}
			d := time.Duration(r.Int64N(int64(window)*5/4)) / time.Duration(1+r.IntN(1000))
			if r.IntN(4) == 0 { // to the edge of a window
				d = limits[r.IntN(len(limits))].Window * time.Duration(1+r.IntN(2))
			}
			if r.IntN(6) == 0 {
				d = -d
			}
			now += d.Microseconds()
		}
	}
	if admitted < 600 {
		t.Errorf("seed %d: only %d of %d takes were admitted", seed, admitted, rounds(200)*20)
	}
}
