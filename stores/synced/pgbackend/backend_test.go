package pgbackend_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/internal/postgrestest"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/backendtest"
	"github.com/floodgate-go/floodgate/stores/synced/pgbackend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// newBackend returns a backend in a server of its own, with its tables.
func newBackend(t *testing.T) (*pgbackend.Backend, *pgxpool.Pool) {
	t.Helper()
	pool := newPool(t, postgrestest.Start(t).URL)
	b := pgbackend.New(pool)
	if err := b.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, pool
}

var (
	at        = time.Now().Truncate(time.Minute)
	threeHits = synced.Batch{Namespace: "ns", Node: "n", Sequence: 1, At: at, Diffs: []synced.Diff{{Key: "k", Window: time.Minute, Start: at, Diff: 3}}}
)

// works pushes three hits, if it has not done so before, and reads them.
func works(t *testing.T, b *pgbackend.Backend) {
	t.Helper()
	if totals, err := b.PushDiffs(t.Context(), threeHits); err != nil || totals[0] != 3 {
		t.Errorf("%v, %v", totals, err)
	}
	if n, err := b.Window(t.Context(), "ns", "k", at, time.Minute); err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestBackend(t *testing.T) {
	t.Parallel()
	_, pool := newBackend(t)
	backendtest.Run(t, func(t *testing.T) synced.Backend { return pgbackend.New(pool) })
}

// Many processes that start at once create the tables, and a process that starts later.
func TestTheTablesAreCreatedOnce(t *testing.T) {
	t.Parallel()
	pool := newPool(t, postgrestest.Start(t).URL)
	b := pgbackend.New(pool)
	if _, err := b.Window(t.Context(), "ns", "k", time.UnixMicro(0), time.Second); err == nil || !strings.HasPrefix(err.Error(), "postgres: ") || !strings.Contains(err.Error(), "floodgate_counters") {
		t.Errorf("without tables: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, pushed := b.PushDiffs(t.Context(), threeHits)
	if err := b.CreateTables(gone); err == nil || pushed == nil || !strings.HasPrefix(err.Error(), "postgres: ") || !strings.HasPrefix(pushed.Error(), "postgres: ") {
		t.Errorf("PushDiffs without tables: %v; CreateTables: %v", pushed, err)
	}
	for _, err := range b.Counters(t.Context(), "ns", nil, at) {
		if err == nil || !strings.HasPrefix(err.Error(), "postgres: ") {
			t.Errorf("Counters without tables: %v", err)
		}
	}
	for range 5 { // in the first round, connections are made one after another
		if _, err := pool.Exec(t.Context(), `DROP TABLE IF EXISTS floodgate_counters, floodgate_nodes`); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := pgbackend.New(pool).CreateTables(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	works(t, b)
	if err := b.CreateTables(t.Context()); err != nil {
		t.Error(err)
	}
	works(t, b)
}

// Tables that a migration has made are used as they are: the user needs no permission to
// create any.
func TestTablesThatAMigrationHasMade(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	owner := newPool(t, server.URL)
	schema, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		string(schema), `REVOKE CREATE ON SCHEMA public FROM PUBLIC`, `CREATE ROLE app LOGIN`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON floodgate_counters, floodgate_nodes TO app`,
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	works(t, pgbackend.New(newPool(t, strings.Replace(server.URL, "postgres@", "app@", 1))))
}

// No statement is left prepared on a connection: a pooler such as pgbouncer gives the next
// statement another one.
func TestNoStatementIsPrepared(t *testing.T) {
	t.Parallel()
	_, setup := newBackend(t)
	config := setup.Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := pgbackend.New(pool)
	works(t, b)
	for _, err := range b.Counters(t.Context(), "ns", []time.Duration{time.Minute}, at) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var prepared []string
	if err := pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(statement), '{}') FROM pg_prepared_statements`, pgx.QueryExecModeExec).Scan(&prepared); err != nil || len(prepared) > 0 {
		t.Errorf("prepared: %q, %v", prepared, err)
	}
}

// Expired rows are looked for every ten seconds by the batches' time, and deleted a thousand at a
// time: if there may be more, with the next batch. A counter expires two lengths after its window has ended, a node a day after its last batch.
func TestWhenRowsAreDeleted(t *testing.T) {
	t.Parallel()
	b, pool := newBackend(t)
	start := time.Now().Truncate(time.Minute)
	push := func(node string, at time.Duration, diffs ...synced.Diff) {
		if _, err := b.PushDiffs(t.Context(), synced.Batch{Namespace: "ns", Node: node, Sequence: uint64(at) + 1, At: start.Add(at), Diffs: diffs}); err != nil {
			t.Fatal(err)
		}
	}
	diffs := []synced.Diff{{Key: "long", Window: 10 * time.Second, Start: start, Diff: 1}}
	for i := range 1500 {
		diffs = append(diffs, synced.Diff{Key: fmt.Sprint("short", i), Window: time.Second, Start: start, Diff: 1})
	}
	push("old", 0, diffs...)
	const day = 24 * time.Hour
	for _, row := range []struct {
		at              time.Duration
		counters, nodes int
	}{
		{10*time.Second - time.Microsecond, 1501, 2},
		{10 * time.Second, 501, 2},
		{10*time.Second + time.Microsecond, 1, 2},
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
