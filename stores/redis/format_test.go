package redisstore_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

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
	if err := storetest.Do(f.t.Context(), f.bound, core.OpTake, batch); err != nil {
		f.t.Fatal(err)
	}
	return batch
}

func (f *formatted) value() []byte            { return []byte(f.server.MustDo("GET", stored(f.t, "k"))) }
func (f *formatted) set(value []byte)         { f.server.MustDo("SET", stored(f.t, "k"), string(value)) }
func (f *formatted) in(d time.Duration) int64 { return f.clock.Now().Add(d).UnixMicro() }

// record returns a record with this expiry, kind and body.
func record(expiry int64, kind byte, body ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(8+len(body)))[:3]
	b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(expiry))[:7]...)
	return append(append(b, kind), body...)
}

var hour = core.PerHour(10)

// A key that nobody has used is admitted, and nothing is logged of it.
func TestANewKeyIsReadable(t *testing.T) {
	server := redistest.Start(t)
	for i, limits := range [][]core.Limit{{hour}, {hour, core.Limit{Quota: 10, Window: 24 * time.Hour}}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			f := newFormatted(t, server, limits...)
			if b := f.take(); !b.Allowed || f.log.Len() > 0 {
				t.Errorf("allowed %v, %+v; the log:\n%s", b.Allowed, b.Items[0].Results, &f.log)
			}
		})
	}
}

// What is not of the format denies a key also if its rule has one limit, for which
// the script has a short way: an empty value, one as long as a state, and one of
// another version.
func TestForeignValuesDenyAKeyOfOneLimit(t *testing.T) {
	server := redistest.Start(t)
	for i, value := range []string{"", "abc", strings.Repeat("x", 33), strings.Repeat("\x02", 33), "\x01", "\x10"} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			f := newFormatted(t, server, hour)
			f.set([]byte(value))
			if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Hour {
				t.Errorf("allowed %v, %+v", b.Allowed, b.Items[0].Results)
			}
		})
	}
}

// Versions 3 to 15 are of newer programs: the value denies its key, and stays. Any
// other version is somebody else's.
func TestWhichVersionsAreNewer(t *testing.T) {
	server := redistest.Start(t)
	for version, newer := range map[byte]bool{0: false, 1: false, 3: true, 4: true, 15: true, 16: false, 255: false} {
		for _, limits := range [][]core.Limit{{hour}, {hour, core.Limit{Quota: 10, Window: 24 * time.Hour}}} {
			t.Run(fmt.Sprint(version, len(limits)), func(t *testing.T) {
				f := newFormatted(t, server, limits...)
				f.take()
				value := f.value()
				value[0] = version
				f.set(value)
				if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Hour {
					t.Errorf("allowed %v, %+v", b.Allowed, b.Items[0].Results)
				}
				if stays := string(f.value()) == string(value); stays != newer {
					t.Errorf("the value stays: %v", stays)
				}
			})
		}
	}
}

// The mark that denies a key in place of a value that cannot be read is a record
// of kind 126 with the length of the time. The format is a contract with other
// versions.
func TestTheMarkOfAValueThatCannotBeRead(t *testing.T) {
	server := redistest.Start(t)
	f := newFormatted(t, server, hour)
	f.set([]byte("abc"))
	f.take()
	length := binary.LittleEndian.AppendUint64(nil, uint64(time.Hour.Microseconds()))[:6]
	mark := record(f.in(time.Hour), 126, length...)
	if want := append([]byte{2}, mark...); string(f.value()) != string(want) {
		t.Errorf("stored %x, want %x", f.value(), want)
	}
	// A write keeps the mark and what is behind it as they are.
	other := record(f.in(2*time.Hour), 44, 'x', 'y')
	f.set(append(append([]byte{2}, mark...), other...))
	batch := one("k", 1, 1)
	batch.Items[0].At = f.in(0)
	if err := storetest.Do(t.Context(), f.bound, core.OpRefund, batch); err != nil {
		t.Fatal(err)
	}
	if want := append(append([]byte{2}, mark...), other...); string(f.value()) != string(want) {
		t.Errorf("a write has made %x of it, want %x", f.value(), want)
	}
	// One byte too many, and it is no mark.
	f.set(append([]byte{2}, record(f.in(time.Minute), 126, append(length, 0)...)...))
	if b := f.take(); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Hour {
		t.Errorf("a mark of another length: allowed %v, %+v", b.Allowed, b.Items[0].Results)
	}
}

// Records of others may have no body. Those that are cut, or shorter than their
// head, make the value unreadable.
func TestTheShortestRecords(t *testing.T) {
	server := redistest.Start(t)
	for name, c := range map[string]struct {
		behind   func(f *formatted) []byte
		readable bool
	}{
		"no body":       {func(f *formatted) []byte { return record(f.in(time.Hour), 44) }, true},
		"a byte":        {func(f *formatted) []byte { return record(f.in(time.Hour), 44, 'x') }, true},
		"two records":   {func(f *formatted) []byte { return append(record(f.in(time.Hour), 44), record(f.in(time.Hour), 46)...) }, true},
		"a byte short":  {func(f *formatted) []byte { r := record(f.in(time.Hour), 44, 'x'); return r[:len(r)-1] }, false},
		"no kind":       {func(f *formatted) []byte { r := record(f.in(time.Hour), 44); r[0]--; return r[:len(r)-1] }, false},
		"half a head":   {func(f *formatted) []byte { return record(f.in(time.Hour), 44)[:5] }, false},
		"a single byte": {func(*formatted) []byte { return []byte{9} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, hour)
			f.take()
			behind := c.behind(f)
			f.set(append(f.value(), behind...))
			if b := f.take(); b.Allowed != c.readable || c.readable && b.Items[0].Results[0].Remaining != 8 {
				t.Errorf("allowed %v, %+v", b.Allowed, b.Items[0].Results)
			}
			if c.readable && !strings.HasSuffix(string(f.value()), string(behind)) {
				t.Errorf("a write has lost %x", behind)
			}
		})
	}
}

// A write keeps 32 records of others and 262,144 bytes of them, and not one more: of too
// many those that expire last. If all are kept, they stay in their order.
func TestHowMuchOfOthersAWriteKeeps(t *testing.T) {
	server := redistest.Start(t)
	for name, c := range map[string]struct {
		sizes []int // of the records, which expire one after the other
		kept  int
	}{
		"32 records":          {slices.Repeat([]int{20}, 32), 32},
		"33 records":          {slices.Repeat([]int{20}, 33), 32},
		"262,144 bytes":       {[]int{131_072, 131_072}, 2},
		"262,145 bytes":       {[]int{131_072, 131_073}, 1},
		"262,144 of the last": {[]int{20, 131_072, 131_072}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFormatted(t, server, hour)
			f.take()
			own := f.value()
			var others []byte
			for i, size := range c.sizes {
				others = append(others, foreignRecord(size, f.clock.Now().Add(time.Duration(i+1)*time.Hour))...)
			}
			f.set(slices.Concat(own, others))
			f.take()
			kept, at := 0, len(own)
			v := f.value()
			for ; at < len(v); kept++ {
				at += 3 + int(v[at]) + int(v[at+1])<<8 + int(v[at+2])<<16
			}
			if kept != c.kept {
				t.Errorf("%d of %d records are kept, want %d", kept, len(c.sizes), c.kept)
			}
			if kept == len(c.sizes) && !bytes.HasSuffix(v, others) {
				t.Error("the records are in another order")
			}
		})
	}
}

// States that no program writes make the value unreadable: counts above the
// largest quota, more buckets than a window has, a sum that is wrong, a length
// that does not fit.
func TestStatesThatNoProgramWrites(t *testing.T) {
	server := redistest.Start(t)
	bucketed := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: 20 * time.Minute}
	fixed := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow}
	lockout := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}}
	token := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket}
	log := core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog}
	u32 := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	const above = 1 << 31
	put := func(at int, b []byte) func([]byte) []byte {
		return func(v []byte) []byte { return append(append(append([]byte(nil), v[:at]...), b...), v[at+len(b):]...) }
	}
	buckets := func(total uint32, counts ...uint32) func([]byte) []byte {
		return func(v []byte) []byte {
			v = append(append([]byte(nil), v[:24+7]...), u32(total)...)
			v = append(v, byte(len(counts)), 0)
			for _, c := range counts {
				v = append(v, u32(c)...)
			}
			v[1] = byte(len(v) - 4)
			return v
		}
	}
	for name, c := range map[string]struct {
		limit    core.Limit
		change   func(v []byte) []byte
		readable bool
	}{
		"sliding, hits":                    {hour, put(25, u32(above)), false},
		"sliding, hits before":             {hour, put(29, u32(above)), false},
		"sliding, most hits before":        {hour, put(29, u32(above-1)), true},
		"fixed, hits":                      {fixed, put(25, u32(above)), false},
		"fixed, hits before":               {fixed, put(29, u32(above)), false},
		"buckets, as many as there may be": {bucketed, buckets(4, 1, 1, 1, 1), true},
		"buckets, as many hits as may be":  {bucketed, buckets(above-1, above-2, 1), true},
		"buckets, one too many":            {bucketed, buckets(5, 1, 1, 1, 1, 1), false},
		"buckets, another sum":             {bucketed, buckets(3, 1, 1, 1, 1), false},
		"buckets, a sum above all":         {bucketed, buckets(above, above-1, 1), false},
		"buckets, none":                    {bucketed, buckets(0), true},
		"buckets, one too few bytes":       {bucketed, func(v []byte) []byte { v[1]--; return v[:len(v)-1] }, false},
		"buckets, half a head":             {bucketed, func(v []byte) []byte { v[1] -= 10; return v[:len(v)-10] }, false},
		"buckets, a length":                {bucketed, func(v []byte) []byte { v[24+7+4]++; return v }, false},
		"lockout, hits":                    {lockout, put(25, u32(above)), false},
		"lockout, most hits":               {lockout, put(25, u32(above-1)), true},
		"lockout, most strikes":            {lockout, put(29, u32(64)), true},
		"lockout, strikes":                 {lockout, put(29, u32(65)), false},
		"fixed, most hits":                 {fixed, put(25, u32(above-1)), true},
		"token, the largest rate":          {token, put(29, u32(above-1)), true},
		"token, the part that none has":    {token, put(25, u32(above-1)), false},
		"token, a rate of 0":               {token, put(29, u32(0)), false},
		"token, a rate above all":          {token, put(29, u32(above)), false},
		"token, a part above its rate":     {token, put(25, u32(10)), false},
		"token, the largest part":          {token, put(25, u32(9)), true},
		"log, none":                        {log, func(v []byte) []byte { v[1], v[18] = v[1]-7, 0; return v[:len(v)-7] }, true},
		"log, half a count":                {log, func(v []byte) []byte { v[1] -= 8; return v[:len(v)-8] }, false},
		"log, a length":                    {log, func(v []byte) []byte { v[18]++; return v }, false},
		"sliding, a length":                {hour, func(v []byte) []byte { v[1]++; return v }, false},
	} {
		for _, more := range [][]core.Limit{nil, {core.PerSecond(100)}} {
			t.Run(fmt.Sprint(name, len(more)), func(t *testing.T) {
				f := newFormatted(t, server, append([]core.Limit{c.limit}, more...)...)
				f.take()
				value := f.value()
				own := 4 + int(value[1]) // the state, and behind it that of the other limit
				changed := c.change(append([]byte(nil), value[:own]...))
				f.set(append(changed, value[own:]...))
				b := f.take()
				r := b.Items[0].Results[0]
				if denied := !b.Allowed && r.RetryAfter == shortest(c.limit, more) && f.log.Len() > 0; denied == c.readable {
					t.Errorf("allowed %v, %+v; %x; the log:\n%s", b.Allowed, r, changed, &f.log)
				}
			})
		}
	}
}

func shortest(l core.Limit, more []core.Limit) time.Duration {
	if len(more) > 0 {
		return more[0].Window
	}
	return l.Window
}
