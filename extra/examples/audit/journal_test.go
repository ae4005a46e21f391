package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// A file with far more entries than are to be kept is not cleared at a stroke,
// which could take longer than the writer waits.
func TestAFileWithTooManyEntriesShrinksBitByBit(t *testing.T) {
	const before, keep = 3*dropLength + 100, 100
	_, file := open(t, before)
	j, err := OpenJournal(file, keep)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close(context.Background()) //nolint:errcheck // of no interest any more
	if _, err := j.db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?)
		INSERT INTO denied SELECT i, i, '', '', '', '', '', '', '', '', '', 0 FROM n`, before); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{before + 1 - dropLength, before + 2 - 2*dropLength, before + 3 - 3*dropLength, keep, keep} {
		if err := j.store([]Entry{{At: time.UnixMicro(int64(before + 1 + i))}}); err != nil {
			t.Fatal(err)
		}
		entries, err := j.Newest(t.Context(), before)
		if err != nil || int64(len(entries)) != want {
			t.Fatalf("after %d batches: %d entries, %v, want %d", i+1, len(entries), err, want)
		}
		// Those that are left are the newest, without a gap.
		newest := int64(before + 1 + i)
		if first, last := entries[0].At.UnixMicro(), entries[want-1].At.UnixMicro(); first != newest || last != newest-want+1 {
			t.Errorf("after %d batches: entries %d to %d, want %d to %d", i+1, last, first, newest-want+1, newest)
		}
	}
}

// Every entry is written or counted as lost, also of those who write while
// somebody closes.
func TestCloseWritesWhatIsWaiting(t *testing.T) {
	j, file := open(t, 100_000)
	for range 500 {
		j.Write(Entry{At: time.Now()})
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 50 {
				j.Write(Entry{At: time.Now()})
			}
		})
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := j.Close(t.Context()); err != nil {
		t.Errorf("closing again: %v", err)
	}
	again, err := OpenJournal(file, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(context.Background()) //nolint:errcheck // of no interest any more
	if n := count(t, again); n+j.Lost() != 1000 || n < 500 {
		t.Errorf("%d entries written, %d lost, of 1000, the first 500 long before", n, j.Lost())
	}
}

// A context that has ended ends Close, while the writer writes.
func TestCloseEndsWithItsContext(t *testing.T) {
	j, _ := open(t, 100)
	busy := &Journal{db: j.db, queue: make(chan Entry), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := busy.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// Close does not say that all is well where the last entries are lost.
func TestCloseTellsWhatItCouldNotWrite(t *testing.T) {
	j, _ := open(t, 100)
	if _, err := j.db.ExecContext(t.Context(), "DROP TABLE denied"); err != nil {
		t.Fatal(err)
	}
	j.Write(Entry{})
	if err := j.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "lost") || j.Lost() != 1 {
		t.Errorf("error %v, %d lost", err, j.Lost())
	}
}
