package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// A charge does not replace the value of a later version, and then charges none of
// its keys. Nor does a take without a limit.
func TestAChargeKeepsTheValueOfANewerVersion(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	const value = "\x03of a newer version"
	server.MustDo("SET", stored(t, "new"), value, "PX", "50000")
	batch := one("old", 1, 1)
	batch.Items = append(batch.Items, one("new", 1, 1).Items...)
	err := storetest.Do(t.Context(), b, core.OpCharge, batch)
	if !errors.Is(err, core.ErrNotCharged) || !strings.Contains(err.Error(), stored(t, "new")) {
		t.Errorf("error %v, want one that names the value and says that nothing was charged", err)
	}
	batch.Items[0].Quotas, batch.Items[1].Quotas = []int64{core.Unlimited}, []int64{core.Unlimited}
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
		t.Errorf("without a limit: allowed %v, error %v", batch.Allowed, err)
	}
	batch.Items[1].Cost = 0
	if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil {
		t.Errorf("a cost of 0: %v", err)
	}
	if got := charged(t, b, "old"); got != 1 {
		t.Errorf("%d counted, want that of the last charge", got)
	}
	if got := server.MustDo("GET", stored(t, "new")); got != value {
		t.Errorf("the value became %q", got)
	}
}

// A charge to a value that cannot be read is counted, and the value denies its key
// all the same, or is replaced.
func TestAChargeToAValueThatCannotBeRead(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	t.Run("denied", func(t *testing.T) {
		b, name, clock, log := denying(t, client)
		server.MustDo("SET", name, "abc")
		batch := one("k", 7, 2)
		if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil || !batch.Allowed {
			t.Fatalf("allowed %v, error %v", batch.Allowed, err)
		}
		if !strings.Contains(log.String(), "cannot be read") {
			t.Errorf("logged %q", log)
		}
		for range 2 {
			if takeTwo(t, b).Allowed {
				t.Error("the key is not denied")
			}
			clock.Advance(59 * time.Minute)
		}
		clock.Advance(-58*time.Minute + time.Microsecond)
		if r := takeTwo(t, b).Items[0].Results; r[0].Remaining != 50-7 || r[1].Allowed {
			t.Errorf("after an hour: %+v, want 7 charged", r)
		}
	})
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	server.MustDo("SET", stored(t, "k"), "abc")
	if err := storetest.Do(t.Context(), b, core.OpCharge, one("k", 7, 1)); err != nil {
		t.Fatal(err)
	}
	if got := charged(t, b, "k"); got != 7 {
		t.Errorf("%d counted of a value that is replaced, want 7", got)
	}
}
