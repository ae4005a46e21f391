package instances_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

func startInFlight(t *testing.T, w inFlight) *processtest.Process {
	t.Helper()
	text, err := json.Marshal(work{InFlight: &w})
	if err != nil {
		t.Fatal(err)
	}
	p := processtest.Start(t, string(text))
	p.Wait("ready", 1)
	return p
}

// handlers returns how many handlers run.
func handlers(t *testing.T, c *redis.Client) (sum int) {
	t.Helper()
	all, err := c.HVals(t.Context(), running).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// watch returns how many handlers run at most.
func watch(t *testing.T, c *redis.Client, d time.Duration) (most int) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); pause(5*time.Millisecond, nil) {
		most = max(most, handlers(t, c))
	}
	return most
}

// Many callers in several processes share ten slots: never more than ten handlers run. The
// slots of a process that is killed are free after a lease.
func TestInFlight(t *testing.T) {
	t.Parallel()
	const quota = 10
	addr := redistest.Start(t).Addr
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	w := inFlight{Addr: addr, Callers: 512, Quota: quota, Lease: 3 * time.Second, Holds: 100 * time.Millisecond, Pauses: 400 * time.Millisecond}
	all := make([]*processtest.Process, processes)
	for i := range all {
		w.Process = i
		all[i] = startInFlight(t, w)
	}
	for _, p := range all {
		p.Begin()
	}
	watch(t, client, time.Second) // until all callers have begun
	check := func(when string) {
		if most := watch(t, client, 2*time.Second); most == 0 || most > quota {
			t.Errorf("%s: %d handlers ran at a time, of %d", when, most, quota)
		}
	}
	check("with four processes")
	all[0].Kill()
	if err := client.HDel(t.Context(), running, "0").Err(); err != nil {
		t.Fatal(err)
	}
	watch(t, client, w.Lease)
	check("a lease after one was killed")
	processtest.Stop(all[1:]...)
	for i, p := range all {
		if n := p.Count("over"); n > 0 {
			t.Errorf("process %d: %d handlers were one too many", i, n)
		}
	}
	remainingSlots(t, w, quota, "in the end")
}

// remainingSlots waits until so many slots of the only key are free in Redis, by the time of
// its clock.
func remainingSlots(t *testing.T, w inFlight, want int64, when string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: w.Addr})
	defer func() { _ = client.Close() }()
	left := int64(0)
	for end := time.Now().Add(patience); time.Now().Before(end); pause(10*time.Millisecond, nil) {
		keys, err := client.Keys(t.Context(), "fgs1:*").Result()
		if err != nil {
			t.Fatal(err)
		}
		left = w.Quota
		for _, key := range keys {
			now, err := client.Time(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			held, err := client.ZCount(t.Context(), key, fmt.Sprint("(", now.UnixMilli()), "+inf").Result()
			if err != nil {
				t.Fatal(err)
			}
			left -= held
		}
		if left == want {
			return
		}
	}
	t.Fatal(fmt.Sprint(when, ": ", left, " slots are free, want ", want))
}
