package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// A command that the server denies fails the operation. The error says whether another key
// has been written before. The server deletes a key of which nothing is left, and does not set
// another.
func TestAWriteThatIsDenied(t *testing.T) {
	bucket := []core.Limit{{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket}}
	for name, c := range map[string]struct {
		limits []core.Limit
		before func(b core.Counters, gone, left *core.Batch) error // makes them nearly nothing, and more
		do     func(b core.Counters, both *core.Batch) error
	}{
		"refund": {bucket, func(b core.Counters, gone, left *core.Batch) error {
			left.Items[0].Cost = 3
			if err := storetest.Do(t.Context(), b, core.OpTake, gone); err != nil {
				return err
			}
			return storetest.Do(t.Context(), b, core.OpTake, left)
		}, func(b core.Counters, both *core.Batch) error {
			both.Items[0].Cost, both.Items[1].Cost = 1, 1
			return storetest.Do(t.Context(), b, core.OpRefund, both)
		}},
		"block": {bucket, func(b core.Counters, gone, left *core.Batch) error {
			if err := storetest.Do(t.Context(), b, core.OpTake, left); err != nil {
				return err
			}
			return block(t.Context(), b, gone, time.Hour)
		}, func(b core.Counters, both *core.Batch) error { return block(t.Context(), b, both, 0) }},
	} {
		for _, written := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				server := redistest.Start(t)
				f := newFormatted(t, server, c.limits...)
				gone, left := one("gone", 1, 1), one("left", 1, 1)
				if err := c.before(f.bound, gone, left); err != nil {
					t.Fatal(err)
				}
				both := &core.Batch{Items: []core.Item{gone.Items[0], left.Items[0]}}
				if !written {
					both.Items = []core.Item{left.Items[0], gone.Items[0]}
				}
				server.MustDo("ACL", "SETUSER", "default", "-set", "-setrange")
				err := c.do(f.bound, both)
				if err == nil || strings.Contains(err.Error(), "some of several keys have been written") != written {
					t.Errorf("error %v, which says that some have been written: want %v", err, written)
				}
			})
		}
	}
}

// A denied take fails if the server does not tell the lifetime of its key: it may have
// none.
func TestALifetimeThatIsNotTold(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	if err := storetest.Do(t.Context(), b, core.OpTake, one("k", 10, 1)); err != nil {
		t.Fatal(err)
	}
	server.MustDo("ACL", "SETUSER", "default", "-pttl")
	if err := storetest.Do(t.Context(), b, core.OpTake, one("k", 1, 1)); err == nil {
		t.Error("no error")
	}
}
