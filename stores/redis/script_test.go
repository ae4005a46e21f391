package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// Every file is part of a script, and every step of an algorithm is one of main.lua.
func TestEveryFileIsPartOfTheScript(t *testing.T) {
	names := map[string]bool{"main.lua": true, "muldiv.lua": true}
	for _, a := range meter.Algorithms() {
		names[a.String()+".lua"] = true
	}
	found, err := fs.Glob(embedded, "script/*")
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]bool{}
	for line := range strings.Lines(library.read("main")) {
		if name, ok := stepOf(line); ok {
			steps[name] = true
		}
	}
	for _, name := range found {
		if !names[path.Base(name)] {
			t.Errorf("%s is in no script", name)
		}
		for line := range strings.Lines(library.read(strings.TrimSuffix(path.Base(name), ".lua"))) {
			if step, ok := stepOf(line); ok && !steps[step] {
				t.Errorf("%s: main.lua has no step %s", name, step)
			}
		}
	}
	if len(found) != len(names) {
		t.Errorf("%d files, want %d", len(found), len(names))
	}
}

// The script of a call has the algorithms that its rules use, and no others.
func TestTheScriptHasNoAlgorithmThatItDoesNotNeed(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	for _, a := range meter.Algorithms() {
		script := library.of(only(a))
		text := script.text.(string)
		if got := client.ScriptLoad(t.Context(), text); got.Err() != nil || got.Val() != script.sha {
			t.Errorf("%v: %v, %v, want %v", a, got.Val(), got.Err(), script.sha)
		}
		for _, other := range meter.Algorithms() {
			if has := strings.Contains(text, fmt.Sprintf("if algorithm == %d then", other.Wire())); has != (other == a) {
				t.Errorf("%v: the script has %v: %v", a, other, has)
			}
		}
	}
}

// The script has a file of the name that its Go twin has.
func TestTheScriptKnowsTheAlgorithms(t *testing.T) {
	for _, a := range meter.Algorithms() {
		if _, err := os.Stat("../../internal/meter/" + a.String() + ".go"); err != nil {
			t.Errorf("%v has no Go twin: %v", a, err)
		}
	}
}

func quotasCounters() *counters {
	return newCounters(New(nil), "l", []core.StoreRule{
		{Name: "three", Limits: []core.Limit{
			{Quota: 9, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 6},
			{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Max: time.Hour, Factor: 2, Decay: time.Hour}},
			core.PerHour(10),
		}, DenyUnreadable: true},
		{Name: "log", Limits: []core.Limit{{Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog}}},
	})
}

// Quotas change the numbers of each limit in what is sent, and nothing else; a take
// with the limits' own sends what one without quotas sends.
func TestTheLimitsWithQuotas(t *testing.T) {
	rule := &quotasCounters().rules[0]
	own := rule.limits.(string)
	for _, it := range []*core.Item{{}, {Quotas: []int64{9, 5, 10}}} {
		if limits, weight := rule.textsOf(it, rule.limits); limits != rule.limits || weight != rule.weight {
			t.Errorf("quotas %v: %x of weight %d, want %x of weight %d", it.Quotas, limits, weight, own, rule.weight)
		}
		if n := testing.AllocsPerRun(10, func() { rule.textsOf(it, rule.limits) }); n > 0 {
			t.Errorf("quotas %v: %v allocations", it.Quotas, n)
		}
	}
	limits, _ := rule.textsOf(&core.Item{Quotas: []int64{3, core.Unlimited, 0}}, rule.limits)
	text := limits.(string)
	const bucket, lockout, window = textHead, textHead + textLimit, textHead + 2*textLimit
	numbers := map[int]uint32{bucket + textQuota: 3, bucket + textCapacity: 2, window + textQuota: 0, window + textCapacity: 0}
	if len(text) != len(own) {
		t.Fatalf("%x, want as many bytes as %x", text, own)
	}
	for at := 0; at < len(own); at++ {
		if at == lockout+textUnlimited {
			if text[at] != 1 {
				t.Error("the lockout has a quota")
			}
		} else if want, ok := numbers[at]; ok {
			if got := binary.LittleEndian.Uint32([]byte(text[at:])); got != want {
				t.Errorf("at byte %d: %d, want %d", at, got, want)
			}
			at += 3
		} else if text[at] != own[at] {
			t.Errorf("byte %d changes", at)
		}
	}
}

// A log that may become long by the quota of a take weighs more, a shorter one less.
func TestALargeQuotaOfALogWeighs(t *testing.T) {
	rule := &quotasCounters().rules[1]
	for quota, want := range map[int64]int{10: rule.weight, 10_000: rule.weight + 1249, 0: rule.weight - 1, core.Unlimited: rule.weight} {
		if _, weight := rule.textsOf(&core.Item{Quotas: []int64{quota}}, rule.limits); weight != want {
			t.Errorf("a quota of %d: %d, want %d", quota, weight, want)
		}
	}
}

// Decisions with the same quotas share one argument of their command.
func TestDecisionsShareTheLimitsWithQuotas(t *testing.T) {
	b := quotasCounters()
	x := &exchange{store: b.store}
	for _, quotas := range [][]int64{nil, {7}, {7}, {8}, {10}} {
		items := []namedItem{{&core.Item{Cost: 1, Quotas: quotas, Results: make([]core.Result, 1)}, &b.rules[1], "k"}}
		x.calls = append(x.calls, b.store.newCall(operation{context.Background(), time.Now().Add(time.Hour)}, verbTake, items))
	}
	x.arm(context.Background(), x.script(), false)
	for i, want := range []int{2, 3, 3, 4, 2} {
		if got := x.calls[i].items[0].place; got != want {
			t.Errorf("the limits of decision %d are argument %d, want %d", i, got, want)
		}
	}
}

// The edges are those of the window that a time is in. They stay until that window ends.
func TestTheEdgesOfAWindow(t *testing.T) {
	zone := time.FixedZone("here", 5*60*60)
	rule := []core.Limit{core.PerHour(10), core.PerMonth(10).In(zone), core.PerDay(10).In(time.UTC)}
	limits := encodeLimits(rule, false)
	e := edgesOf(rule)
	month := func(m time.Month) time.Time { return time.Date(2026, m, 1, 0, 0, 0, 0, zone) }
	day := func(d int) time.Time { return time.Date(2026, 3, d, 0, 0, 0, 0, time.UTC) }
	for _, row := range []struct {
		now      time.Time
		month    time.Month
		day      int
		from, to time.Time
	}{
		{time.Date(2026, 3, 10, 12, 0, 0, 999_999_000, time.UTC), 3, 10, day(10), day(11)},
		{day(10), 3, 10, day(10), day(11)},
		{day(11).Add(-time.Microsecond), 3, 10, day(10), day(11)},
		{day(1), 3, 1, day(1), day(2)},                  // the month has begun before
		{month(3), 3, 0, month(3), day(1)},              // the month begins on the last day of the one before
		{month(4), 4, 31, month(4), day(32)},            // as the next one
		{month(4).Add(-1000), 3, 31, day(31), month(4)}, // and ends then
	} {
		w := e.write(limits, row.now.UnixMicro())
		if !time.UnixMicro(w.from).Equal(row.from) || !time.UnixMicro(w.to).Equal(row.to) {
			t.Errorf("%v: right from %v to %v, want %v to %v", row.now, time.UnixMicro(w.from).UTC(), time.UnixMicro(w.to).UTC(), row.from, row.to)
		}
		for limit, want := range map[int][2]time.Time{1: {month(row.month), month(row.month + 1)}, 2: {day(row.day), day(row.day + 1)}} {
			for i := range want {
				text := []byte(w.text.(string))[textHead+limit*textLimit+textNumbers+8*i:]
				if got := time.UnixMicro(int64(binary.LittleEndian.Uint64(text))); !got.Equal(want[i]) {
					t.Errorf("%v: edge %d of limit %d is %v, want %v", row.now, i, limit, got.UTC(), want[i])
				}
			}
		}
	}
}

// A call needs the edges around the time that it carries. Without one, that is the server's
// time as far as the store knows it.
func TestTheTimeOfACallsEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, now := New(nil), time.Now().UnixMicro()
		rule := &newCounters(s, "l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerDay(10).In(time.UTC)}}}).rules[0]
		day := func(carried int64) int64 {
			text := []byte(rule.textFor(s, carried).(string))[textHead+textNumbers:]
			return int64(binary.LittleEndian.Uint64(text))
		}
		const length = 24 * 3_600_000_000
		today := now - now%length
		if got := day(0); got != today {
			t.Errorf("the edges of %d, want %d: nothing is known of the server's time", got, today)
		}
		jumped := redis.Error(edgesError(today + 3*length - 500_000))
		if !s.learns(errors.Join(errors.New("denied"), jumped)) {
			t.Error("the server's time is not read")
		}
		if got, want := day(0), today+2*length; got != want {
			t.Errorf("the edges of %d, want %d", got, want)
		}
		time.Sleep(time.Second)
		if got, want := day(0), today+3*length; got != want {
			t.Errorf("the edges of %d, want %d: the server's clock goes on", got, want)
		}
		if got := day(5); got != 0 {
			t.Errorf("the edges of %d, want those of 0, which the call carries", got)
		}
	})
}

// edgesError is the error of a server whose time is in no window of a call.
type edgesError int64

func (e edgesError) Error() string { return edgesPrefix + strconv.FormatInt(int64(e), 10) }
func (edgesError) RedisError()     {}

// A URL with sentinels has the user and the password of the database before the @, and
// those of the sentinels in its parameters.
func TestTheUsersOfAURLWithSentinels(t *testing.T) {
	u, err := parseURL("redis+sentinel://bob:one@10.0.0.1/2?master=m&addr=10.0.0.2&sentinel_username=guard&sentinel_password=two")
	if err != nil {
		t.Fatal(err)
	}
	o, err := u.sentinelOptions()
	if err != nil {
		t.Fatal(err)
	}
	if o.Username != "bob" || o.Password != "one" || o.SentinelUsername != "guard" || o.SentinelPassword != "two" || o.MasterName != "m" || o.DB != 2 ||
		len(o.SentinelAddrs) != 2 || o.SentinelAddrs[0] != "10.0.0.1:26379" || o.SentinelAddrs[1] != "10.0.0.2:26379" {
		t.Errorf("%+v", o)
	}
}

// As many decisions on one window travel together as may, and fewer the longer they
// take. One that may take a millisecond travels alone.
func TestHowManyDecisionsTravelTogether(t *testing.T) {
	hour := core.PerHour(100)
	hourly := func(a core.Algorithm, quota int64) core.Limit {
		return core.Limit{Quota: quota, Window: time.Hour, Algorithm: a, Precision: time.Second}
	}
	for _, c := range []struct {
		what        string
		limits      []core.Limit
		least, most int
	}{
		{"one window", []core.Limit{hour}, mostCalls, mostCalls},
		{"three windows", []core.Limit{hour, hour, hour}, mostCalls, mostCalls},
		{"four windows", []core.Limit{hour, hour, hour, hour}, 40, 60},
		{"a token bucket", []core.Limit{hourly(core.TokenBucket, 100)}, mostCalls, mostCalls},
		{"a lockout", []core.Limit{{Quota: 5, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Hour}}}, mostCalls, mostCalls},
		{"3,600 buckets", []core.Limit{hourly(core.BucketedWindow, 100)}, 1, 4},
		{"a short log", []core.Limit{hourly(core.SlidingLog, 10)}, mostCalls, mostCalls},
		{"a log of 500", []core.Limit{hourly(core.SlidingLog, 500)}, 5, 6},
		{"a long log", []core.Limit{hourly(core.SlidingLog, 10_000)}, 0, 0},
		{"the largest quota", []core.Limit{hourly(core.SlidingLog, core.MaxQuota)}, 0, 0},
	} {
		rule := newCounters(New(nil), "l", []core.StoreRule{{Name: "r", Limits: c.limits}}).rules[0]
		if n := min(mostCalls, mostWeight/(callWeight+rule.weight)); n < c.least || n > c.most {
			t.Errorf("%s: %d together, want %d to %d", c.what, n, c.least, c.most)
		}
	}
}
