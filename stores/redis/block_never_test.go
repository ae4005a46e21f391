package redisstore_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// No waiting helps a cost above the quota, of a blocked key either.
func TestABlockLeavesNeverAlone(t *testing.T) {
	b := bind(t, newClient(t, redistest.Start(t).Addr), daily)
	if err := block(t.Context(), b, one("k", 0, 1), time.Minute); err != nil {
		t.Fatal(err)
	}
	batch := one("k", 1_000_000_000, 1)
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil {
		t.Fatal(err)
	}
	if r := batch.Items[0].Results[0]; batch.Allowed || r.RetryAfter != core.Never {
		t.Errorf("allowed %t, wait %v, want never", batch.Allowed, r.RetryAfter)
	}
}
