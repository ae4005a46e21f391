package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Nobody takes from the queue here, so that one wait would be for ever.
func TestAFullQueueHoldsUpNobody(t *testing.T) {
	j := &Journal{queue: make(chan Entry, 2)}
	s := serve(t, j)
	t.Cleanup(func() { // lets go who waits all the same, or the server's end would wait for them
		for len(j.queue) > 0 {
			<-j.queue
		}
	})
	deny(t, s, "x")
	if len(j.queue) != 2 || j.Lost() != 1 {
		t.Errorf("%d wait and %d are lost, want 2 and 1", len(j.queue), j.Lost())
	}
}

// A database that is broken costs entries while it is, and then no more.
func TestABrokenDatabaseFailsNobody(t *testing.T) {
	j, _ := open(t, 100)
	s := serve(t, j)
	if _, err := j.db.ExecContext(t.Context(), "DROP TABLE denied"); err != nil {
		t.Fatal(err)
	}
	deny(t, s, "x")
	waitFor(t, func() bool { return j.Lost() == 3 })
	if status, body := get(t, s, "/audit", "browser"); status != http.StatusServiceUnavailable || strings.Contains(body, "table") {
		t.Errorf("status %d, %q", status, body)
	}
	if _, err := j.db.ExecContext(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	get(t, s, "/api", "x")
	waitFor(t, func() bool { return count(t, j) == 1 })
	if _, body := get(t, s, "/audit", "browser"); j.Lost() != 3 || !strings.Contains(body, "3 more could not be kept") {
		t.Errorf("%d are lost, want 3, and the page says so:\n%s", j.Lost(), body)
	}
}

// What is denied just before the program is told to stop is in the file.
func TestShutdownWritesWhatIsWaiting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.db")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener, file, 100) }()
	for range 8 {
		resp, err := http.Get("http://" + listener.Addr().String() + "/api")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	j, err := OpenJournal(file, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close(context.Background()) //nolint:errcheck // of no interest any more
	if n := count(t, j); n != 3 {
		t.Errorf("%d entries are in the file, want 3", n)
	}
}

func TestNothingIsServedWithoutADatabase(t *testing.T) {
	if _, err := OpenJournal(filepath.Join(t.TempDir(), "a.db"), 0); err == nil || !strings.Contains(err.Error(), "keep: 0") {
		t.Error(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), listener, filepath.Join(t.TempDir(), "no", "such", "folder.db"), 1); err == nil || !strings.Contains(err.Error(), "folder.db") {
		t.Error(err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
}
