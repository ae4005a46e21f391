package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite"
)

// Entry is one denied request.
type Entry struct {
	At         time.Time
	Method     string
	Route      string
	Client     string
	UserAgent  string
	Limiter    string
	Rule       string
	Limit      string
	Counter    string // the counter's stored name, which has the key only as a hash
	Reason     string
	RetryAfter time.Duration
}

// Journal keeps the newest entries in a database. Writing is done by one
// goroutine, many entries in one transaction; a database that is slow or gone
// costs entries, which are counted, and never a request's time. Its methods may
// be called concurrently.
type Journal struct {
	db      *sql.DB
	keep    int
	queue   chan Entry
	lost    atomic.Int64
	done    chan struct{} // closed when the writer has ended
	failed  error         // of the last batch; read once done is closed
	closing sync.RWMutex
	closed  bool
}

const (
	queueLength = 1024 // entries that wait for the writer
	batchLength = 256  // entries in one transaction
	// dropLength is how many old entries a transaction drops: more than it
	// adds, so that too many become fewer, and so few that it ends in time.
	dropLength = 4 * batchLength
	// writeTimeout is how long the writer waits for the database.
	writeTimeout = 2 * time.Second
)

const schema = `CREATE TABLE IF NOT EXISTS denied (
	id INTEGER PRIMARY KEY,
	at INTEGER NOT NULL, -- microseconds since the Unix epoch
	method TEXT NOT NULL, route TEXT NOT NULL, client TEXT NOT NULL, user_agent TEXT NOT NULL,
	limiter TEXT NOT NULL, rule TEXT NOT NULL, "limit" TEXT NOT NULL, counter TEXT NOT NULL,
	reason TEXT NOT NULL, retry_after INTEGER NOT NULL -- microseconds
)`

// OpenJournal opens the database file, made where there is none, and starts the
// writer. keep is the most entries that are kept, 1 or more. A file that has
// more from earlier loses the oldest bit by bit, with each batch that is written.
func OpenJournal(file string, keep int) (*Journal, error) {
	if keep < 1 {
		return nil, fmt.Errorf("keep: %d: must be 1 or more", keep)
	}
	// Escaped: a ? or # of the name would end it, and open another file.
	name := (&url.URL{Path: file}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)")
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(schema); err != nil { //nolint:noctx // before there is anything to hold up
		return nil, errors.Join(fmt.Errorf("%s: %w", file, err), db.Close())
	}
	j := &Journal{db: db, keep: keep, queue: make(chan Entry, queueLength), done: make(chan struct{})}
	go j.write()
	return j, nil
}

// Write hands an entry to the writer. It never waits: where too many are
// waiting, or the journal is closed, the entry is counted as lost.
func (j *Journal) Write(e Entry) {
	j.closing.RLock()
	defer j.closing.RUnlock()
	if j.closed {
		j.lost.Add(1)
		return
	}
	select {
	case j.queue <- e:
	default:
		j.lost.Add(1)
	}
}

// Lost returns how many entries have not been kept.
func (j *Journal) Lost() int64 { return j.lost.Load() }

// Close writes what is waiting, until ctx ends, and closes the database. Its
// error tells where the last entries could not be kept. Where ctx ends first,
// the writer ends on its own soon after: the closed database refuses it.
// Closing again does nothing.
func (j *Journal) Close(ctx context.Context) error {
	j.closing.Lock()
	if j.closed {
		j.closing.Unlock()
		return nil
	}
	j.closed = true
	j.closing.Unlock()
	close(j.queue)
	select {
	case <-j.done:
		err := j.failed
		if err != nil {
			err = fmt.Errorf("audit: the last entries are lost: %w", err)
		}
		return errors.Join(err, j.db.Close())
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("audit: what was waiting is lost: %w", ctx.Err()), j.db.Close())
	}
}

// write is the writer: it takes what is there, up to a batch, and writes it.
func (j *Journal) write() {
	defer close(j.done)
	for first := range j.queue {
		batch := append(make([]Entry, 0, batchLength), first)
	gather:
		for len(batch) < batchLength {
			select {
			case e, more := <-j.queue:
				if !more {
					break gather
				}
				batch = append(batch, e)
			default:
				break gather
			}
		}
		err := j.store(batch)
		if err != nil {
			j.lost.Add(int64(len(batch)))
		}
		switch { // once for each change, not for each batch
		case err != nil && j.failed == nil:
			slog.Warn("the audit log cannot be written", "error", err)
		case err == nil && j.failed != nil:
			slog.Info("the audit log is written again", "lost", j.Lost())
		}
		j.failed = err
	}
}

// store writes a batch and drops the oldest entries, in one transaction.
func (j *Journal) store(batch []Entry) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing once committed
	insert, err := tx.PrepareContext(ctx, `INSERT INTO denied
		(at, method, route, client, user_agent, limiter, rule, "limit", counter, reason, retry_after)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // ends with the transaction
	// What is no UTF-8 would be kept as bytes that nobody can show.
	text := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	for _, e := range batch {
		if _, err := insert.ExecContext(ctx, e.At.UnixMicro(), text(e.Method), text(e.Route), text(e.Client), text(e.UserAgent),
			text(e.Limiter), text(e.Rule), text(e.Limit), text(e.Counter), text(e.Reason), e.RetryAfter.Microseconds()); err != nil {
			return err
		}
	}
	// Identifiers ascend without gaps that matter: those below the newest
	// minus keep are the oldest.
	const drop = `DELETE FROM denied WHERE id IN (
		SELECT id FROM denied WHERE id <= (SELECT max(id) FROM denied) - ? ORDER BY id LIMIT ?)`
	if _, err := tx.ExecContext(ctx, drop, j.keep, dropLength); err != nil {
		return err
	}
	return tx.Commit()
}

// Newest returns the newest entries, the newest first, at most n.
func (j *Journal) Newest(ctx context.Context, n int) ([]Entry, error) {
	rows, err := j.db.QueryContext(ctx, `SELECT at, method, route, client, user_agent, limiter, rule, "limit", counter, reason, retry_after
		FROM denied ORDER BY id DESC LIMIT ?`, n)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	var entries []Entry
	for rows.Next() {
		var e Entry
		var at, retryAfter int64
		if err := rows.Scan(&at, &e.Method, &e.Route, &e.Client, &e.UserAgent, &e.Limiter, &e.Rule, &e.Limit, &e.Counter, &e.Reason, &retryAfter); err != nil {
			return nil, err
		}
		e.At, e.RetryAfter = time.UnixMicro(at), time.Duration(retryAfter)*time.Microsecond
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

// Total is how many of the entries kept are of one rule.
type Total struct {
	Limiter, Rule string
	Count         int64
}

// Totals returns the totals of all rules, the largest first.
func (j *Journal) Totals(ctx context.Context) ([]Total, error) {
	rows, err := j.db.QueryContext(ctx, `SELECT limiter, rule, count(*) FROM denied GROUP BY limiter, rule ORDER BY 3 DESC, 1, 2`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	var totals []Total
	for rows.Next() {
		var t Total
		if err := rows.Scan(&t.Limiter, &t.Rule, &t.Count); err != nil {
			return nil, err
		}
		totals = append(totals, t)
	}
	return totals, rows.Err()
}
