// Package instances tests what several processes of an application share: they
// allow a quota together, also if some of them are killed and started again, or
// are of another version.
package instances_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/postgrestest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

const processes = 4

// kinds are the servers that processes share.
var kinds = map[string]func(t *testing.T) string{
	"redis":               func(t *testing.T) string { return redistest.Start(t).Addr },
	"cluster":             func(t *testing.T) string { return strings.Join(redistest.StartCluster(t, 3).Addrs(), ",") },
	"memcached":           func(t *testing.T) string { return memcachedtest.Start(t).Addr },
	"postgres":            func(t *testing.T) string { return postgrestest.Start(t).URL },
	"postgres, each take": func(t *testing.T) string { return postgrestest.Start(t).URL },
}

func eachKind(t *testing.T, f func(t *testing.T, kind, addr string)) {
	for kind, start := range kinds {
		t.Run(kind, func(t *testing.T) { f(t, kind, start(t)) })
	}
}

// limit has a window of about a day, and is another one for each number.
func limit(quota int64, number int) core.Limit {
	return core.Limit{Quota: quota, Window: time.Duration(24+number) * time.Hour}
}

// fleet is processes that do the same work, those that were killed among them.
type fleet struct {
	t       *testing.T
	work    work
	running []*processtest.Process
	all     []*processtest.Process
	kills   int
}

func newFleet(t *testing.T, w work, n int) *fleet {
	f := &fleet{t: t, work: w, running: make([]*processtest.Process, n)}
	for i := range f.running {
		f.start(i)
	}
	for _, p := range f.running {
		p.Wait("ready", 1)
	}
	return f
}

// begin lets all processes take.
func (f *fleet) begin() {
	f.t.Helper()
	for _, p := range f.running {
		p.Begin()
	}
}

func (f *fleet) start(i int) {
	f.t.Helper()
	text, err := json.Marshal(f.work)
	if err != nil {
		f.t.Fatal(err)
	}
	f.running[i] = processtest.Start(f.t, string(text))
	f.all = append(f.all, f.running[i])
}

// kill kills a process when it has taken so often (at most enough), and starts another one.
func (f *fleet) kill(i, takes int) {
	f.t.Helper()
	f.running[i].Wait("try", takes)
	f.running[i].Kill()
	f.kills++
	f.start(i)
	f.running[i].Wait("ready", 1)
	f.running[i].Begin()
}

// end waits until all processes are done, and lets them end.
func (f *fleet) end() {
	f.t.Helper()
	for _, p := range f.running {
		p.Wait("done", 1)
	}
	processtest.Stop(f.running...)
}

// allowed returns how many takes were allowed, of a key or (-1) of all, and of
// how many takes nobody knows what has become.
func (f *fleet) allowed(key int) (allowed, unknown int64) {
	for _, p := range f.all {
		unknown += int64(p.Count("try") - p.Count("denied"))
		for k := range max(1, f.work.Keys) {
			n := int64(p.Count(fmt.Sprint("allowed ", k)))
			unknown -= n
			if k == key || key < 0 {
				allowed += n
			}
		}
	}
	return allowed, unknown
}

// rest takes by itself what the processes have left, and returns how much of each key that was.
func rest(t *testing.T, w work) (all int64, own []int64) {
	t.Helper()
	store, err := w.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	own = make([]int64, max(1, w.Keys))
	for key := range own {
		for {
			batch := w.batch(key)
			if err := store.counters.Do(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			if !batch.Allowed {
				break
			}
			own[key]++
			all++
		}
	}
	if err := store.close(); err != nil {
		t.Error(err)
	}
	return all, own
}

// check checks that a key's quota was allowed, by the processes and what was left: no more of it,
// and no less than what nobody knows of. An approximate store may exceed it by what the others
// allow between two exchanges, and forgets as much with each process that is killed.
func check(t *testing.T, what string, quota, allowed, unknown int64, f ...*fleet) {
	t.Helper()
	most := quota
	for _, f := range f {
		if f.work.Kind == "postgres" {
			most += int64(len(f.running)+f.kills) * betweenSync
		}
	}
	if f[0].work.Kind == "postgres" {
		most -= betweenSync
	}
	if allowed > most || allowed+unknown < quota {
		t.Errorf("%s: %d takes of a quota of %d were allowed, at most %d may be; of %d nobody knows", what, allowed, quota, most, unknown)
	}
	t.Logf("%s: %d takes of a quota of %d were allowed, at most %d may be; of %d nobody knows", what, allowed, quota, most, unknown)
}

// Processes that take from several keys at once, all or none, allow the quota of
// each key together, also if some are killed at any point of a take and started again.
func TestProcessesShareGroupsOfKeys(t *testing.T) {
	eachKind(t, func(t *testing.T, kind, addr string) {
		const all, own, keys = 300, 45, 8 // all is used up before the last of own is
		w := work{Kind: kind, Addr: addr, Limiter: "groups", Keys: keys, Limits: [][]core.Limit{
			{limit(all, 0)},
			{limit(own, 0), limit(10*own, 1)},
		}}
		f := newFleet(t, w, processes)
		f.begin()
		for i := range 2 {
			f.kill(i, 10+5*i)
		}
		f.end()
		left, leftOf := rest(t, w)
		n, unknown := f.allowed(-1)
		check(t, "the key of all", all, n+left, unknown, f)
		if most := int64(f.kills * atOnce); unknown > most {
			t.Errorf("%d takes have no end, at most %d were under way", unknown, most)
		}
		for key := range keys {
			n, _ := f.allowed(key)
			if most := own + betweenSync*int64(processes+f.kills-1); n+leftOf[key] > own && (kind != "postgres" || n+leftOf[key] > most) {
				t.Errorf("key %d: %d takes of a quota of %d were allowed", key, n+leftOf[key], own)
			}
		}
	})
}

// Two versions of a program beside each other, with another window and another set of limits under
// the same names, each allow their own quota. Hits of a limit that both have are counted together.
func TestProcessesOfTwoVersions(t *testing.T) {
	eachKind(t, func(t *testing.T, kind, addr string) {
		const older, newer, both = 100, 150, 100_000
		w := work{Kind: kind, Addr: addr, Limiter: "versions"}
		first, second := w, w
		first.Limits = [][]core.Limit{{limit(older, 0), limit(both, 1)}}
		second.Limits = [][]core.Limit{{limit(both, 1), limit(newer, 2), limit(10*newer, 3)}}
		a, b := newFleet(t, first, 2), newFleet(t, second, 2)
		a.begin()
		b.begin()
		a.end()
		b.end()
		leftA, _ := rest(t, first)
		leftB, _ := rest(t, second)
		n, unknown := a.allowed(-1)
		check(t, "the older version", older, n+leftA, unknown, a)
		m, unknownB := b.allowed(-1)
		check(t, "the newer version", newer, m+leftB, unknownB, b)
		if unknown+unknownB != 0 {
			t.Errorf("%d takes have no end", unknown+unknownB)
		}
		store, err := first.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		peek := first.batch(0)
		peek.Op, peek.Items[0].Cost = core.OpPeek, 0
		if err := store.counters.Do(t.Context(), peek); err != nil {
			t.Fatal(err)
		}
		if used := both - peek.Items[0].Results[1].Remaining; used != n+leftA+m+leftB {
			t.Errorf("the limit of both has %d hits, want %d", used, n+leftA+m+leftB)
		}
		if err := store.close(); err != nil {
			t.Error(err)
		}
	})
}

// Processes with many callers each, whose decisions travel together, allow exactly
// the quota of a key, whatever its algorithm.
func TestProcessesWithManyCallersShareAKey(t *testing.T) {
	const quota = 1500
	long := core.MaxWindow // no hit of a token bucket comes back meanwhile
	for _, l := range []core.Limit{
		{Name: "sliding", Quota: quota, Window: long},
		{Name: "fixed", Quota: quota, Window: long, Algorithm: core.FixedWindow},
		{Name: "bucketed", Quota: quota, Window: long, Algorithm: core.BucketedWindow, Precision: long / 366},
		{Name: "log", Quota: quota, Window: long, Algorithm: core.SlidingLog},
		{Name: "token", Quota: quota, Window: long, Algorithm: core.TokenBucket},
		{Name: "lockout", Quota: quota, Window: long, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Hour, Factor: 2, Max: 24 * time.Hour, Decay: time.Hour}},
	} {
		t.Run(l.Name, func(t *testing.T) {
			w := work{Kind: "redis", Addr: redistest.Start(t).Addr, Limiter: "many", AtOnce: 64, Limits: [][]core.Limit{{l}}}
			f := newFleet(t, w, processes)
			f.begin()
			f.end()
			n, unknown := f.allowed(-1)
			if left, _ := rest(t, w); n != quota || left != 0 || unknown != 0 {
				t.Errorf("%d of a quota of %d were allowed, %d were left, and of %d nobody knows", n, quota, left, unknown)
			}
		})
	}
}
