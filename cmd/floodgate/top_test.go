package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// serviceOf returns the policies of a service that counts in the Redis at url.
func serviceOf(t *testing.T, url, path string) *policy.Set {
	t.Helper()
	client := core.Must(redisstore.NewClient(url))
	store := redisstore.New(client, redisstore.Timeout(5*time.Second), redisstore.WithoutDenialCache(), redisstore.AnotherInstance())
	set := core.Must(policy.Load(path, policy.WithStore(store)))
	t.Cleanup(func() {
		if err := errors.Join(set.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	return set
}

func take(t *testing.T, l *core.Limiter, n int64, rule, key string) {
	t.Helper()
	if _, err := l.Take(t.Context(), n, core.Hit{Rule: rule, Key: key}); err != nil {
		t.Fatal(err)
	}
}

// SCAN may return a counter twice, also with other numbers. However many counters there are, few are held.
func TestTopListsACounterOnce(t *testing.T) {
	n, held := nearest{top: 5}, 0
	one := func(name, limit string, used float64) {
		n.add(near{name: name, limit: core.Limit{Name: limit}, used: used})
	}
	for i := range 5000 {
		if name := map[int]string{500: "b", 501: "c", 502: "a", 4000: "a"}[i]; name != "" {
			one(name, "z", 0.6+float64(i/4000)/10)
			one(name, "l", 0.6+float64(i/4000)/10)
		}
		one(fmt.Sprint(i), "l", 0.5-float64(i)/10000)
		held = max(held, len(n.held))
	}
	var got []string
	for _, l := range n.list() {
		got = append(got, fmt.Sprint(l.name, l.limit.Name, l.used))
	}
	if want := "al0.7 az0.7 bl0.6 bz0.6 cl0.6"; strings.Join(got, " ") != want || held != slack+4*5+3 {
		t.Errorf("lists %q, want %s; holds %d", got, want, held)
	}
}

// A limit that no hit can use any more, such as one whose quota has become 0, and a
// limit of which nothing is used are not listed. Each used limit of a key is.
func TestTopListsWhatIsUsed(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: [10/h, 20/d, 9/1ms]}]")
	api := serviceOf(t, "redis://"+server.Addr, path).Limiter()
	take(t, api, 3, "api", "ann")
	processtest.WaitFor(t, "the millisecond to be over on the server", func() bool {
		d := core.Must(api.Peek(t.Context(), 0, core.Hit{Rule: "api", Key: "ann"}))
		used := 0
		for s := range d.Limits() {
			used += int(s.Limit.Quota - s.Remaining)
		}
		return used == 3+3
	})
	for text, want := range map[string]string{"10/h, 20/d, 9/1ms": "10 per 1h 20 per 1d", "0/h, 9/1ms": ""} {
		path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: ["+text+"]}]")
		out, _ := expect(t, exitFine, "", "top", path, "--store", "redis://"+server.Addr, "--top", "2")
		listed := regexp.MustCompile(`\d+ per \w+`).FindAllString(out, -1)
		if out, _ := expect(t, exitFine, "", "top", path, "--store", "redis://"+server.Addr, "--top", "1"); strings.Count(out, "\n") != min(3, 2+len(want)) {
			t.Errorf("%s, one:\n%s", text, out)
		}
		if !strings.HasPrefix(out, "1 counter\n") || strings.Join(listed, " ") != want || strings.Contains(out, "NaN") {
			t.Errorf("%s:\n%s", text, out)
		}
	}
}
