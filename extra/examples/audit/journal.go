package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite"
)

// Entry is one denied request.
type Entry struct {
	At                               time.Time
	Method, Route, Client, UserAgent string
	Limiter, Rule, Limit, Reason     string
	Counter                          string // the counter's stored name, which has the key only as a hash
	RetryAfter                       time.Duration
}

// Journal keeps the newest entries in a database. One goroutine writes them. A database that is
// slow or gone costs entries, which are counted, and never a request's time. Its methods may be
// called concurrently.
type Journal struct {
	db    *sql.DB
	keep  int
	queue chan Entry
	lost  atomic.Int64
	stop  chan struct{}
	done  chan struct{} // closed when the writer has ended
}

const (
	queueLength  = 1024 // entries that wait for the writer
	writeTimeout = 2 * time.Second
)

const schema = `CREATE TABLE IF NOT EXISTS denied (
	id INTEGER PRIMARY KEY,
	at INTEGER, -- microseconds since the Unix epoch
	method TEXT, route TEXT, client TEXT, user_agent TEXT, limiter TEXT, rule TEXT, "limit" TEXT, reason TEXT, counter TEXT,
	retry_after INTEGER -- microseconds
)`

// OpenJournal opens the database file, creating it if necessary, and starts the writer. keep is
// the most entries that are kept.
func OpenJournal(file string, keep int) (*Journal, error) {
	// Escaped: a ? or # in the name would end it, and open another file.
	name := (&url.URL{Path: file}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(1000)")
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(schema); err != nil { //nolint:noctx // before there is anything to hold up
		return nil, errors.Join(fmt.Errorf("%s: %w", file, err), db.Close())
	}
	j := &Journal{db: db, keep: keep, queue: make(chan Entry, queueLength), stop: make(chan struct{}), done: make(chan struct{})}
	go j.write()
	return j, nil
}

// Write hands an entry to the writer. It never waits: if too many entries wait, this one is lost.
func (j *Journal) Write(e Entry) {
	select {
	case j.queue <- e:
	default:
		j.lost.Add(1)
	}
}

// Lost returns how many entries are lost.
func (j *Journal) Lost() int64 { return j.lost.Load() }

// Close writes what is waiting and closes the database. Later entries are lost.
func (j *Journal) Close() error {
	close(j.stop)
	<-j.done
	return j.db.Close()
}

// write is the writer.
func (j *Journal) write() {
	defer close(j.done)
	failing := false
	for {
		var e Entry
		select {
		case e = <-j.queue:
		default:
			select {
			case e = <-j.queue:
			case <-j.stop:
				return
			}
		}
		err := j.store(e)
		if err != nil {
			j.lost.Add(1)
		}
		if err != nil && !failing { // once, not for each entry
			slog.Warn("the audit log cannot be written", "error", err)
		}
		failing = err != nil
	}
}

// store writes an entry and drops the one that is too old.
func (j *Journal) store(e Entry) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	// What is no UTF-8 would be kept as bytes that nobody can show.
	text := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	_, err := j.db.ExecContext(ctx, "INSERT INTO denied VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		e.At.UnixMicro(), text(e.Method), text(e.Route), text(e.Client), text(e.UserAgent), text(e.Limiter), text(e.Rule), text(e.Limit),
		text(e.Reason), text(e.Counter), e.RetryAfter.Microseconds())
	if err == nil {
		_, err = j.db.ExecContext(ctx, "DELETE FROM denied WHERE id <= (SELECT max(id) FROM denied) - ?", j.keep)
	}
	return err
}

// Newest returns at most n entries, the newest first.
func (j *Journal) Newest(ctx context.Context, n int) ([]Entry, error) {
	rows, err := j.db.QueryContext(ctx, "SELECT * FROM denied ORDER BY id DESC LIMIT ?", n)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	var entries []Entry
	for rows.Next() {
		var e Entry
		var id, at, retryAfter int64
		if err := rows.Scan(&id, &at, &e.Method, &e.Route, &e.Client, &e.UserAgent, &e.Limiter, &e.Rule, &e.Limit, &e.Reason, &e.Counter, &retryAfter); err != nil {
			return nil, err
		}
		e.At, e.RetryAfter = time.UnixMicro(at), time.Duration(retryAfter)*time.Microsecond
		entries = append(entries, e)
	}
	return entries, rows.Err()
}
