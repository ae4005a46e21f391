package redisstore_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// all is one limit of every algorithm.
func all(quota int64) []core.Limit {
	return []core.Limit{
		{Name: "sliding", Quota: quota, Window: time.Hour},
		{Name: "fixed", Quota: quota, Window: time.Hour, Algorithm: core.FixedWindow},
		{Name: "bucketed", Quota: quota, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
		{Name: "log", Quota: quota, Window: time.Hour, Algorithm: core.SlidingLog},
		{Name: "token", Quota: quota, Window: 100 * time.Hour, Algorithm: core.TokenBucket},
	}
}

// What is stored where, for as long as the major version is one.
func TestStoredNames(t *testing.T) {
	server := redistest.Start(t)
	b := core.Must(redisstore.New(newClient(t, server.Addr), redisstore.Timeout(patience)).Open("api", hourly))
	for _, k := range []string{"", "192.0.2.1", "a b\r\n{c}"} {
		take(t, b, k)
	}
	got := newClient(t, server.Addr).Keys(t.Context(), "*").Val()
	slices.Sort(got)
	want := []string{
		"fg1:api:r:47DEQpj8HBSa-_TImW-5JA",
		"fg1:api:r:N_z_JL9iA1srCAIK_Ai0_g",
		"fg1:api:r:lq2cB6uYvOCZkGlaHmqfgQ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("stored under %q, want %q: a name changes only with a major version", got, want)
	}
}

// A refund of nothing stores nothing. So a block that a clock does not believe, because it was set back,
// is there when the clock is right again.
func TestARefundOfNothingStoresNothing(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.PerHour(10))
	batch := f.take()
	batch.For = time.Second
	blocked := storetest.Do(t.Context(), f.bound, core.OpBlock, batch)
	f.clock.Advance(-time.Minute)
	refunded := storetest.Do(t.Context(), f.bound, core.OpRefund, one("k", 0, 1))
	f.clock.Advance(time.Minute)
	if blocked != nil || refunded != nil || f.take().Allowed {
		t.Errorf("%v, %v, or the block has ended", blocked, refunded)
	}
}

// By a clock that is behind, a window that has begun counts in full, and the one before too.
func TestAClockThatIsBehind(t *testing.T) {
	f := newFormatted(t, redistest.Start(t), core.PerHour(20))
	for _, c := range []struct {
		later      time.Duration
		op         core.Op
		cost, left int64
	}{{0, core.OpTake, 10, 10}, {time.Hour, core.OpTake, 1, 9}, {-30 * time.Minute, core.OpTake, 9, 0}, {0, core.OpGrant, 15, 15}} {
		f.clock.Advance(c.later)
		b := one("k", c.cost, 1)
		if err := storetest.Do(t.Context(), f.bound, c.op, b); err != nil || !b.Allowed || b.Items[0].Results[0].Remaining != c.left {
			t.Errorf("%v of %d: %+v, want %d left; %v", c.op, c.cost, b, c.left, err)
		}
	}
}

// A refund after a wait takes no strike back: the next wait is twice as long.
func TestARefundAfterAWait(t *testing.T) {
	lockout := core.Lockout{First: time.Minute, Factor: 2, Max: 2*time.Minute + time.Microsecond, Decay: time.Hour}
	f := newFormatted(t, redistest.Start(t), core.Limit{Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: lockout})
	for range 2 {
		f.take()
	}
	f.clock.Advance(time.Minute)
	do(t, f.bound, core.OpRefund, f.take())
	for range 2 {
		f.take()
	}
	if wait := f.take().Items[0].Results[0].RetryAfter; wait != 2*time.Minute {
		t.Errorf("a wait of %v, want two minutes", wait)
	}
}

// The format of values: one that an older version wrote is read by a newer one.
func TestStoredValues(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	rules := []core.StoreRule{{Name: "r", Limits: all(5)}}
	b := bind(t, client, rules, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
	batch := one("k", 2, 5)
	do(t, b, core.OpTake, batch)
	name := core.StoreRule{Name: "r"}.StoredKey("TestStoredValues", []byte("k"))
	const golden = "Ah0AABVV5fVaRAYAAKST1gAAFQ2+SFlEBgIAAAAAAAAAHQAAFbFRH1pEBgIApJPWAAAVDb5IWUQGAgAAAAAAAAAlAAAAebAiWkQGBACkk9YAAACHkwMAAMKbwAEAAAACAAAAAQACAAAAHgAAFbFRH1pEBgYApJPWAAACABUNvkhZRAYVDb5IWUQGHQAAFq3Pz3pEBggAEKzRUwAVrc/PekQGAAAAAAUAAAA="
	value := server.MustDo("GET", name)
	if got := base64.StdEncoding.EncodeToString([]byte(value)); got != golden {
		t.Errorf("stored %s, want %s", got, golden)
	}
	for golden, c := range map[string]struct {
		limit  core.Limit
		spoilt bool // the value cannot be read
	}{
		"AiMAAAD8d9LXRAYMAKAUnW8CCvPh3EgQALw6U3xCBgEAAAAAjScA":     {core.PerMonth(10).In(core.Must(time.LoadLocation("Europe/Berlin"))), false},
		"AiQAABU45SJaRAYKAKST1gAAFQ2+SFlEBgEAAAABAAAAFZRRTFlEBg==": {core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}}, false},
		"Ag4AABWxUR9aRAZ+AKST1gAA":                                 {core.PerHour(10), true},
	} {
		f := newFormatted(t, server, c.limit)
		server.MustDo("DEL", stored(t, "k"))
		if c.spoilt {
			f.set([]byte("abc"))
		}
		f.take()
		if got := base64.StdEncoding.EncodeToString(f.value()); got != golden {
			t.Errorf("%v: stored %s, want %s", c.limit, got, golden)
		}
	}
	decoded, _ := base64.StdEncoding.DecodeString(golden)
	server.MustDo("SET", name, string(decoded))
	batch = one("k", 1, 5)
	do(t, b, core.OpTake, batch)
	for i, r := range batch.Items[0].Results {
		if r.Remaining != 2 {
			t.Errorf("%v: %d left of a stored value with 2 of 5 hits, after one more", rules[0].Limits[i], r.Remaining)
		}
	}
}

// formatted is a rule of these limits on a store that denies what it cannot read.
type formatted struct {
	t      *testing.T
	server *redistest.Server
	bound  core.Counters
	clock  *storetest.Clock
	limits int
	log    strings.Builder
}

func newFormatted(t *testing.T, server *redistest.Server, limits ...core.Limit) *formatted {
	f := &formatted{t: t, server: server, clock: storetest.NewClock(time.UnixMicro(1_764_000_123_456_789)), limits: len(limits)}
	f.bound = bind(t, newClient(t, server.Addr), []core.StoreRule{{Name: "r", Limits: limits, DenyUnreadable: true}},
		redisstore.Timeout(patience), redisstore.Clock(f.clock.Now), redisstore.Log(slog.New(slog.NewTextHandler(&f.log, nil))))
	return f
}

func (f *formatted) take() *core.Batch {
	f.t.Helper()
	batch := one("k", 1, f.limits)
	do(f.t, f.bound, core.OpTake, batch)
	return batch
}

func (f *formatted) value() []byte    { return []byte(f.server.MustDo("GET", stored(f.t, "k"))) }
func (f *formatted) set(value []byte) { f.server.MustDo("SET", stored(f.t, "k"), string(value)) }

// A value that is not of this store, or is damaged, counts as none and is replaced. If the rule
// demands it, it denies its key for the shortest window, and the key begins anew then.
func TestForeignValues(t *testing.T) {
	server := redistest.Start(t)
	limits := append([]core.Limit{{Quota: 3, Window: 24 * time.Hour}}, all(3)...) // the shortest window is not the first
	f := newFormatted(t, server, limits...)
	replaces := bind(t, newClient(t, server.Addr), []core.StoreRule{{Name: "r", Limits: limits}}, redisstore.Timeout(patience), redisstore.Clock(f.clock.Now))
	f.take()
	valid := string(f.value())
	name := stored(t, "k")
	for what, command := range map[string][]string{
		"text":     {"SET", name, "abc"},
		"number":   {"SET", name, "9223372036854775807"},
		"version":  {"SET", name, "\x01" + valid[1:]},
		"cut":      {"SET", name, valid[:len(valid)-1]},
		"longer":   {"SET", name, valid + "\x00"},
		"block":    {"SET", name, "\x02\x08\x00\x00\xff\xff\xff\xff\xff\xff\x0f~"}, // without its length
		"huge log": {"SET", name, "\x01\x06" + valid[2:8] + "\xff\xff"},
		"list":     {"RPUSH", name, "a", "b"},
		"hash":     {"HSET", name, "a", "b"},
	} {
		foreign := func() {
			server.MustDo("DEL", name)
			server.MustDo(command...)
		}
		foreign()
		batch := one("k", 1, f.limits)
		if err := storetest.Do(t.Context(), replaces, core.OpTake, batch); err != nil || !batch.Allowed || batch.Items[0].Results[3].Remaining != 2 {
			t.Errorf("%s: allowed %t, %+v, %v", what, batch.Allowed, batch.Items[0].Results, err)
		}
		foreign()
		peek := one("k", 0, f.limits)
		if err := storetest.Do(t.Context(), f.bound, core.OpPeek, peek); err != nil || !peek.Allowed || peek.Items[0].Results[0].Remaining != 0 {
			t.Errorf("%s: a peek without cost: %+v, %v", what, peek, err)
		}
		for _, op := range []core.Op{core.OpGrant, core.OpCharge} { // only a charge begins the denial, too
			if err := storetest.Do(t.Context(), f.bound, op, one("k", 1, f.limits)); err != nil || lifetime(server, name) > time.Hour != (op == core.OpCharge) {
				t.Errorf("%s: after a %v the value lives for %v; %v", what, op, lifetime(server, name), err)
			}
		}
		foreign()
		f.clock.Advance(time.Second) // the denial begins with the first take
		begun := f.clock.Now()
		for range 3 {
			batch := f.take()
			for _, r := range batch.Items[0].Results {
				if want := begun.Add(time.Hour).Sub(f.clock.Now()); batch.Allowed || r.Allowed || r.Remaining != 0 || r.RetryAfter != want || r.ResetAfter != want || r.MoreAfter != want {
					t.Errorf("%s: allowed %t, %+v, want %v to wait", what, batch.Allowed, r, want)
				}
			}
			do(t, f.bound, core.OpRefund, batch) // of nothing
			f.clock.Advance(time.Minute)
		}
		f.clock.Advance(57*time.Minute - time.Microsecond)
		if f.take().Allowed {
			t.Errorf("%s: allowed before an hour has passed", what)
		}
		f.clock.Advance(time.Microsecond)
		if batch := f.take(); !batch.Allowed || batch.Items[0].Results[3].Remaining != 2 {
			t.Errorf("%s: after an hour: %+v", what, batch.Items[0].Results)
		}
	}
	if got := f.log.String(); !strings.Contains(got, `level=WARN msg="redis: one of these stored values cannot be read" names=[`+name+"] action=deny more=0\n") {
		t.Errorf("logged %q", got)
	}
}

// A value in the right format is unreadable all the same if no charge leads to it.
func TestImpossibleStates(t *testing.T) {
	server := redistest.Start(t)
	limits := all(9)
	lockout := core.Limit{Quota: 9, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}}
	for what, c := range map[string]struct {
		limit  core.Limit
		behind int // so many bytes from the end is a byte that is set
		to     byte
	}{
		"hits out of order":          {limits[3], 1, 0},
		"a wrong sum":                {limits[2], 4, 9},
		"too many strikes":           {lockout, 11, 65},
		"too many failures":          {lockout, 12, 0x80},
		"too many hits":              {limits[0], 5, 0x80},
		"too many hits before":       {limits[0], 1, 0x80},
		"too many of a fixed window": {limits[1], 5, 0x80},
		"a number that is always 0":  {limits[1], 1, 0x80},
		"a rate of 0":                {limits[4], 4, 0},
		"too high a rate":            {limits[4], 1, 0x80},
		"a fraction as high":         {limits[4], 8, 9},
		"a day of months":            {core.PerDay(9).In(time.UTC), 1, 1},
		"too many of a calendar":     {core.PerDay(9).In(time.UTC), 5, 0x80},
	} {
		f := newFormatted(t, server, c.limit)
		server.MustDo("DEL", stored(t, "k"))
		f.take()
		f.take()
		value := f.value()
		value[len(value)-c.behind] = c.to
		f.set(value)
		if f.take().Allowed {
			t.Errorf("%s: allowed", what)
		}
	}
}

// Whatever others do to the bytes of a value, a take decides, and the next one does.
func TestDamagedValues(t *testing.T) {
	server := redistest.Start(t)
	lockout := core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}}
	f := newFormatted(t, server, append(all(3), lockout, core.PerDay(3).In(time.UTC))...)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds(1000) {
		server.MustDo("DEL", stored(t, "k"))
		f.take()
		value := f.value()
		for range 1 + r.IntN(3) {
			at := r.IntN(len(value))
			switch r.IntN(6) {
			case 0:
				value = slices.Delete(value, at, min(len(value), at+r.IntN(20)))
			case 1:
				value = slices.Insert(value, at, make([]byte, r.IntN(20))...)
			default:
				value[at] ^= 1 << r.IntN(8)
			}
			value = append(value, 0)[:max(1, len(value))]
		}
		f.set(value)
		for range 2 {
			batch := one("k", 1, f.limits)
			err := storetest.Do(t.Context(), f.bound, core.OpTake, batch)
			if err != nil && !errors.Is(err, core.ErrDamaged) {
				t.Fatalf("seed %d, round %d, %x: %v", seed, round, value, err)
			}
			for _, res := range batch.Items[0].Results {
				if err == nil && (res.Remaining < 0 || res.Remaining > 3 || res.ResetAfter < 0 || res.Allowed != (res.RetryAfter == 0)) {
					t.Fatalf("seed %d, round %d, %x: %+v", seed, round, value, res)
				}
			}
		}
	}
}

// A value that is far longer than any of the store's is not read. A write keeps the records of
// others, in their order, until a minute after they have expired: the other clock may be late.
func TestHowMuchOfOthersIsKept(t *testing.T) {
	server := redistest.Start(t)
	f := newFormatted(t, server, core.PerHour(10))
	f.take()
	own := f.value()
	record := func(number byte, size int, expires time.Duration) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(size-3))[:3]
		b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(f.clock.Now().Add(expires).UnixMicro()))[:7]...)
		return append(append(b, 44, number), make([]byte, size-12)...) // a kind that no program has yet
	}
	var others []byte
	for i := range byte(3) {
		others = append(others, record(i, 20, time.Hour)...)
	}
	f.set(slices.Concat(own, others))
	f.take()
	if got := f.value(); !bytes.HasSuffix(got, others) || len(got) != len(own)+len(others) {
		t.Errorf("stored %x", got)
	}
	for size, allowed := range map[int]bool{4 << 20: true, 4<<20 + 1: false} {
		f.set(slices.Concat(own, record(1, size-len(own), time.Hour)))
		if got := f.take().Allowed; got != allowed {
			t.Errorf("a value of %d bytes: allowed %t, want %t", size, got, allowed)
		}
	}
	for ago, kept := range map[time.Duration]bool{time.Minute - time.Microsecond: true, time.Minute: false} {
		old := record(1, 20, -ago)
		f.set(slices.Concat(own, old))
		if f.take(); bytes.HasSuffix(f.value(), old) != kept {
			t.Errorf("a record that has expired %v ago is kept: %t, want %t", ago, !kept, kept)
		}
	}
}

// By the application's clock, a state lives a minute longer than it counts, because that clock
// may be late. A take gives the value the lifetime that it needs, whatever it had.
func TestLifetimes(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	const day, window = 24 * time.Hour, 300 * 24 * time.Hour
	lockout := core.Lockout{First: day, Factor: 2, Max: 2 * day, Decay: 50 * day}
	at := clock.Now().UnixMicro()
	bucket := time.Duration((window/10).Microseconds()-at%(window/10).Microseconds()) * time.Microsecond // until it ends
	for i, c := range []struct {
		limit core.Limit
		ends  time.Duration // when the state means nothing any more
	}{
		{core.Limit{Quota: 5, Window: window}, 2 * window},
		{core.Limit{Quota: 5, Window: window, Algorithm: core.FixedWindow}, window},
		{core.Limit{Quota: 5, Window: window, Algorithm: core.BucketedWindow, Precision: window / 10}, window + bucket},
		{core.Limit{Quota: 5, Window: window, Algorithm: core.SlidingLog}, window},
		{core.Limit{Quota: 5, Window: window, Algorithm: core.TokenBucket}, window},
		{core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: lockout}, lockout.First + lockout.Decay}, // the wait, and until it is forgotten
		{core.Limit{Quota: 9, Window: window, Algorithm: core.FixedWindow, Lockout: lockout}, window},
	} {
		for _, more := range [][]core.Limit{nil, {core.PerSecond(99)}} {
			t.Run(fmt.Sprint(i, len(more)), func(t *testing.T) {
				b := bind(t, client, []core.StoreRule{{Name: "r", Limits: append([]core.Limit{c.limit}, more...)}}, redisstore.Timeout(patience), redisstore.Clock(clock.Now))
				name := stored(t, "k")
				cost := int64(5)
				for _, spoil := range [][]string{nil, {"PERSIST", name}, {"PEXPIRE", name, fmt.Sprint((c.ends - time.Minute).Milliseconds())}, {"PEXPIRE", name, fmt.Sprint((c.ends + 2*time.Minute).Milliseconds())}} {
					if spoil != nil {
						server.MustDo(spoil...)
					}
					batch := one("k", cost, 1+len(more))
					do(t, b, core.OpCharge, batch)
					if got := lifetime(server, name); got <= c.ends+30*time.Second || got > c.ends+time.Minute+time.Second {
						t.Errorf("after %q: lifetime %v, want %v and a minute", spoil, got, c.ends)
					}
					if c.limit.Algorithm == core.TokenBucket || c.limit.Algorithm == core.SlidingLog {
						return // another charge makes the state last longer
					}
					cost = 1
				}
			})
		}
	}
}

// By the server's clock, a value lives for a second longer than the last of its records, after
// whatever operations, also beside a record of another program.
func TestTheLifetimeIsThatOfTheLastRecord(t *testing.T) {
	limits := []core.Limit{
		{Quota: 4, Window: 2 * time.Hour, Algorithm: core.TokenBucket},
		{Quota: 60, Window: time.Hour, Algorithm: core.FixedWindow},
		{Quota: 50, Window: time.Hour, Algorithm: core.SlidingLog},
	}
	client := newClient(t, redistest.Start(t).Addr)
	name, seed := stored(t, "k"), rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var b core.Counters
	var taken []*core.Batch
	for i := range rounds(2000) {
		if i%50 == 0 {
			random.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
			b, taken = bind(t, client, []core.StoreRule{{Name: "r", Limits: limits[:1+i/50%3]}}, redisstore.Timeout(patience)), nil
			client.Del(t.Context(), name)
		}
		batch, op := one("k", random.Int64N(3), 1+i/50%3), []core.Op{core.OpTake, core.OpTake, core.OpCharge, core.OpGrant, core.OpBlock, core.OpRefund}[random.IntN(6)]
		switch {
		case op == core.OpBlock:
			batch.For = []time.Duration{time.Microsecond, 5 * time.Hour}[random.IntN(9)/8]
		case op == core.OpGrant:
			batch.Items[0].Cost++
		case op == core.OpRefund && len(taken) > 0:
			batch, taken = taken[0], taken[1:]
		}
		do(t, b, op, batch)
		if op == core.OpTake && batch.Allowed {
			taken = append(taken, batch)
		}
		value, last := client.Get(t.Context(), name).Val(), int64(0)
		if value == "" {
			continue
		}
		for rest := value[1:]; rest != ""; {
			last = max(last, int64(binary.LittleEndian.Uint64([]byte(rest[3:10]+"\x00"))))
			length := 3 + int(binary.LittleEndian.Uint32([]byte(rest[:3]+"\x00")))
			if rest = rest[min(length, len(rest)):]; 0 < len(rest) && len(rest) < 11 {
				t.Fatalf("seed %d: after %d operations, the last a %v: stored %x", seed, i, op, value)
			}
		}
		if got, want := client.PTTL(t.Context(), name).Val(), time.Until(time.UnixMicro(last))+time.Second; (got - want).Abs() > time.Second/2 {
			t.Fatalf("seed %d: after %d operations, the last a %v: lifetime %v, want %v", seed, i, op, got, want)
		}
		if random.IntN(40) == 0 { // another program adds a record
			expires := time.Now().Add(time.Duration(random.IntN(3)) * time.Hour).UnixMicro()
			other := string(binary.LittleEndian.AppendUint64(nil, uint64(expires))[:7]) + "\x58" + strings.Repeat("o", 9)
			until := time.UnixMicro(max(last, expires)).Add(time.Second)
			client.Do(t.Context(), "SET", name, value+"\x11\x00\x00"+other, "PXAT", until.UnixMilli())
		}
	}
}

// lifetime returns the lifetime of a stored value.
func lifetime(server *redistest.Server, name string) time.Duration {
	n, _ := strconv.ParseInt(strings.TrimPrefix(server.MustDo("PTTL", name), ":"), 10, 64)
	return time.Duration(n) * time.Millisecond
}
