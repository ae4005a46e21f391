// Package pgbackend keeps the counters of package synced in PostgreSQL.
//
//	store, err := synced.New(pgbackend.New(pool), synced.Config{Interval: time.Second})
//
// The counters are in two tables, floodgate_counters and floodgate_nodes. [Backend.CreateTables]
// creates them, or schema.sql with your migrations. The user then needs SELECT, INSERT, UPDATE and
// DELETE on them and nothing more. A batch is one statement, and no statement is prepared: a pooler
// such as pgbouncer may be in between. The tables show nothing that a client sent. Pushes delete
// expired rows, a thousand at a time.
package pgbackend

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/floodgate-go/floodgate/stores/synced"
)

//go:embed schema.sql
var schema string

//go:embed push.sql
var pushStatement string

// unprepared is an argument of all queries: a prepared statement exists on one
// connection, and pgbouncer runs the next query on another one.
const unprepared = pgx.QueryExecModeExec

// Backend is a [synced.Backend] in PostgreSQL 10 or later. It is made by [New].
// Its methods may be called concurrently.
type Backend struct {
	pool  *pgxpool.Pool
	swept atomic.Int64 // when expired rows were last looked for, in microseconds
}

var _ synced.Backend = (*Backend)(nil)

// New returns a backend on a pool, whose owner closes it. It does not connect.
func New(pool *pgxpool.Pool) *Backend { return &Backend{pool: pool} }

// CreateTables creates the tables that do not exist, in the first schema of the connection's
// search_path. Call it before the store counts. Several processes may call it at the same time.
func (b *Backend) CreateTables(ctx context.Context) error {
	// CREATE TABLE IF NOT EXISTS fails if two processes run it at once. The statements
	// are one transaction, because they are sent together.
	if _, err := b.pool.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('floodgate_counters')); `+schema); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

const (
	// nodeLife is how long a node's last sequence is kept.
	nodeLife = 24 * time.Hour
	// Every sweepEvery, a batch deletes at most sweepRows expired rows. If there are as many,
	// the next batch goes on.
	sweepEvery = 10 * time.Second
	sweepRows  = 1000
)

// PushDiffs implements [synced.Backend] with one statement.
func (b *Backend) PushDiffs(ctx context.Context, batch synced.Batch) ([]int64, error) {
	n := len(batch.Diffs)
	keys, sizes, starts, diffs, expiries := make([]string, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, d := range batch.Diffs {
		keys[i], sizes[i], starts[i], diffs[i] = d.Key, d.Window.Microseconds(), d.Start.UnixMicro(), d.Diff
		expiries[i] = d.Start.Add(3 * d.Window).UnixMicro()
	}
	rows, _ := b.pool.Query(ctx, pushStatement, unprepared, batch.Namespace, batch.Node, int64(batch.Sequence), batch.At.UnixMicro(), keys, sizes, starts, diffs, expiries) //nolint:gosec // nobody counts 2^63 batches
	// AppendRows returns the error of the query too.
	totals, err := pgx.AppendRows(make([]int64, 0, n), rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	b.sweep(ctx, batch.At)
	return totals, nil
}

// sweep deletes expired rows, if it is time. A failure does not fail the
// exchange: a later sweep tries again.
func (b *Backend) sweep(ctx context.Context, now time.Time) {
	last := b.swept.Load()
	if now.UnixMicro()-last < sweepEvery.Microseconds() || !b.swept.CompareAndSwap(last, now.UnixMicro()) {
		return
	}
	deleted, _ := b.pool.Exec(ctx, `DELETE FROM floodgate_counters WHERE ctid IN (
		SELECT ctid FROM floodgate_counters WHERE expires < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, unprepared, now.UnixMicro(), sweepRows)
	if deleted.RowsAffected() == sweepRows {
		b.swept.Store(last)
	}
	_, _ = b.pool.Exec(ctx, `DELETE FROM floodgate_nodes WHERE ctid IN (
		SELECT ctid FROM floodgate_nodes WHERE seen < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, unprepared, now.Add(-nodeLife).UnixMicro(), sweepRows)
}

// Counters implements [synced.Backend] with one query.
func (b *Backend) Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[synced.Counter, error] {
	sizes := make([]int64, len(windows))
	for i, w := range windows {
		sizes[i] = w.Microseconds()
	}
	return func(yield func(synced.Counter, error) bool) {
		rows, _ := b.pool.Query(ctx, `SELECT key, size, start, greatest(0, count) FROM floodgate_counters
			WHERE namespace = $1 AND size = ANY($2) AND start <= $3 AND start > $3 - 2 * size`, unprepared, namespace, sizes, at.UnixMicro())
		defer rows.Close()
		for rows.Next() {
			var key string
			var size, start, count int64
			if rows.Scan(&key, &size, &start, &count) != nil {
				break // rows.Err has the error
			}
			if !yield(synced.Counter{Key: key, Window: time.Duration(size) * time.Microsecond, Start: time.UnixMicro(start), Count: count}, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil { // of the query, too
			yield(synced.Counter{}, fmt.Errorf("postgres: %w", err))
		}
	}
}

// Window implements [synced.Backend].
func (b *Backend) Window(ctx context.Context, namespace, key string, start time.Time, window time.Duration) (n int64, err error) {
	err = b.pool.QueryRow(ctx, `SELECT coalesce(max(greatest(0, count)), 0) FROM floodgate_counters WHERE namespace = $1 AND size = $2 AND start = $3 AND key = $4`,
		unprepared, namespace, window.Microseconds(), start.UnixMicro(), key).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("postgres: %w", err)
	}
	return n, nil
}
