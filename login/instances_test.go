package login_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/login"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// newInstances returns two sites that share a Redis, each with a client, a
// store and a denial cache of its own, and one clock.
func newInstances(t *testing.T, addr string, c login.Config) (a, b *site) {
	t.Helper()
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	instance := func() *site {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		c.Store = redisstore.New(client, redisstore.Clock(clock.Now), redisstore.Timeout(10*time.Second), redisstore.AnotherInstance())
		c.Resilience = resilient.Config{Timeout: 20 * time.Second}
		return newSiteAt(t, clock, c)
	}
	return instance(), instance()
}

// The other instance has just denied the account. The Unblock resets the failures of the
// address and of the account.
func TestAnUnblockTakesEffectOnOtherInstancesWithinASecond(t *testing.T) {
	for name, c := range map[string]login.Config{
		"address and account": {Attempts: core.PerMinute(1000)},
		"account":             {Attempts: core.PerMinute(1000), AccountFailures: core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow}, ForgetAddresses: true},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := newInstances(t, redistest.Start(t).Addr, c)
			many(8, func(int) int { return there.wrong("203.0.113.1", "alice") })
			there.want(many(20, func(int) int { return there.wrong("203.0.113.1", "alice") }), "map[429:20]")
			if err := here.guard.Unblock(context.Background(), "alice"); err != nil {
				t.Fatal(err)
			}
			here.clock.Advance(time.Second)
			there.want(many(1, func(int) int { return there.wrong("203.0.113.1", "alice") }), "map[401:1]")
		})
	}
}

// A denial cache does not hide the other limits.
func TestStatusOfADeniedAccountHasAllLimits(t *testing.T) {
	s, _ := newInstances(t, redistest.Start(t).Addr, login.Config{})
	many(8, func(int) int { return s.wrong("203.0.113.1", "alice") })
	st, err := s.guard.Status(context.Background(), "alice", "203.0.113.1")
	if err != nil || !st.AddressAccount.Denied || st.Account.Limit.Quota != 100 || st.Address.Limit.Quota != 20 || st.Account.Remaining != 95 {
		t.Errorf("%+v, %v", st, err)
	}
}
