package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// serviceOf returns the limiter of a service that counts by a policy file.
func serviceOf(t *testing.T, server *redistest.Server, path string) *core.Limiter {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	set, err := policy.Load(path, policy.WithStore(redisstore.New(client, redisstore.Timeout(5*time.Second), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(set.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	return set.Limiter()
}

func take(t *testing.T, l *core.Limiter, n int64, key string) {
	t.Helper()
	if _, err := l.Take(t.Context(), n, core.Hit{Rule: "api", Key: key}); err != nil {
		t.Fatal(err)
	}
}

// A limit that no hit can use any more, such as one whose quota has become 0, and a
// limit of which nothing is used are not listed.
func TestTopListsWhatIsUsed(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: [10/h, 9/1ms]}]")
	api := serviceOf(t, server, path)
	take(t, api, 3, "ann")
	processtest.WaitFor(t, "the millisecond to be over on the server", func() bool {
		d, err := api.Peek(t.Context(), 0, core.Hit{Rule: "api", Key: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		used := 0
		for s := range d.Limits() {
			used += int(s.Limit.Quota - s.Remaining)
		}
		return used == 3
	})
	for text, want := range map[string]string{
		"policies: [{name: api, key: ip, limits: [10/h, 9/1ms]}]": "10 per 1h",
		"policies: [{name: api, key: ip, limits: [0/h, 9/1ms]}]":  "",
	} {
		out, _ := expect(t, exitFine, "", "top", file(t, "limits.yaml", text), "--store", "redis://"+server.Addr, "--top", "1")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if lines[0] != "1 counter" || len(lines) != 2 && want == "" || want != "" && (len(lines) != 3 || !strings.Contains(lines[2], want)) || strings.Contains(out, "NaN") {
			t.Errorf("%s:\n%s", text, out)
		}
	}
}

// What is used of a burst is the burst less what remains.
func TestTopOfABurst(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 10/366d token_bucket burst=40}]")
	take(t, serviceOf(t, server, path), 3, "ann")
	out, _ := expect(t, exitFine, "", "top", path, "--store", "redis://"+server.Addr)
	if columns := strings.Join(strings.Fields(out), " "); !strings.Contains(columns, "(token_bucket, burst 40) 3 37 ") {
		t.Errorf("want 3 used and 37 remaining:\n%s", out)
	}
}

// Of any counters, in any order and with repetitions, the nearest are those of a
// plain sort, and the memory is bounded.
func TestTheNearestAreThoseOfAPlainSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.IntRange(1, 5).Draw(t, "top")
		n, seed := rapid.IntRange(0, 3*slack).Draw(t, "counters"), rapid.IntRange(1, 1000).Draw(t, "seed")
		repeated := rapid.IntRange(1, 50).Draw(t, "repeated")
		found := nearest{top: top}
		best := map[[2]string]float64{} // a plain model: the largest share of each
		for i := range n {
			one := near{name: fmt.Sprint("k", i*seed%997/repeated), limit: core.Limit{Name: fmt.Sprint("l", i%2)}, used: float64(i*seed%101) / 100}
			found.add(one)
			if len(found.held) > 4*top+slack {
				t.Fatalf("%d counters are held", len(found.held))
			}
			id := [2]string{one.name, one.limit.Name}
			best[id] = max(best[id], one.used)
		}
		type row struct {
			id   [2]string
			used float64
		}
		var want []row
		for id, used := range best {
			want = append(want, row{id, used})
		}
		slices.SortFunc(want, func(a, b row) int {
			return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.id[0], b.id[0]), cmp.Compare(a.id[1], b.id[1]))
		})
		want = want[:min(top, len(want))]
		got := found.list()
		if len(got) != len(want) {
			t.Fatalf("%d are listed, want %d", len(got), len(want))
		}
		for i, one := range got {
			if have := (row{[2]string{one.name, one.limit.Name}, one.used}); have != want[i] {
				t.Fatalf("number %d is %v, want %v", i, have, want[i])
			}
		}
	})
}
