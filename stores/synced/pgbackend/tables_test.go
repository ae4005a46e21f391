package pgbackend_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/internal/postgrestest"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/pgbackend"
)

// New returns an error if a column of either table is missing.
func TestEachColumnIsNeeded(t *testing.T) {
	t.Parallel()
	pool := newPool(t, postgrestest.Start(t).URL)
	newBackend(t, pool)
	rename := func(table, from, to string) {
		if _, err := pool.Exec(t.Context(), fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", table, from, to)); err != nil {
			t.Fatal(err)
		}
	}
	for table, columns := range map[string][]string{
		"floodgate_counters": {"namespace", "key", "size", "start", "count", "expires"},
		"floodgate_nodes":    {"namespace", "node", "sequence", "seen"},
	} {
		for _, c := range columns {
			rename(table, c, "other")
			if _, err := pgbackend.New(t.Context(), pool); err == nil || !strings.Contains(err.Error(), table) || !strings.Contains(err.Error(), c) {
				t.Errorf("%s without %s: %v", table, c, err)
			}
			rename(table, "other", c)
		}
	}
	newBackend(t, pool)
}

// Expired rows are looked for every ten seconds by the batches' time. A counter
// expires two lengths after its window has ended, a node a day after its last
// batch.
func TestWhenRowsAreDeleted(t *testing.T) {
	t.Parallel()
	pool := newPool(t, postgrestest.Start(t).URL)
	b := newBackend(t, pool)
	start := time.Now().Truncate(time.Minute)
	push := func(node string, at time.Duration, diffs ...synced.Diff) {
		if _, err := b.PushDiffs(t.Context(), synced.Batch{Namespace: "ns", Node: node, Sequence: uint64(at) + 1, At: start.Add(at), Diffs: diffs}); err != nil {
			t.Fatal(err)
		}
	}
	push("old", 0, synced.Diff{Key: "short", Window: time.Second, Start: start, Diff: 1}, synced.Diff{Key: "long", Window: 10 * time.Second, Start: start, Diff: 1})
	const day = 24 * time.Hour
	for _, row := range []struct {
		at              time.Duration
		counters, nodes int
	}{
		{10*time.Second - time.Microsecond, 2, 2},
		{10 * time.Second, 1, 2},
		{20 * time.Second, 1, 2},
		{30 * time.Second, 1, 2},
		{40*time.Second - time.Microsecond, 1, 2},
		{40 * time.Second, 0, 2},
		{day, 0, 2},
		{day + 10*time.Second, 0, 1},
	} {
		push("n", row.at)
		for table, want := range map[string]int{"floodgate_counters": row.counters, "floodgate_nodes": row.nodes} {
			var n int
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n != want {
				t.Errorf("after %v: %s has %d rows, want %d", row.at, table, n, want)
			}
		}
	}
}
