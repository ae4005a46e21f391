package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

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
