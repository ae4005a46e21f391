// Package exampletest runs the programs of examples that serve.
package exampletest

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Log is a log that tells each of its lines.
type Log chan string

// Write implements io.Writer.
func (l Log) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// Wait waits for a line with the text.
func (l Log) Wait(t *testing.T, text string) {
	t.Helper()
	for {
		select {
		case line := <-l:
			if strings.Contains(line, text) {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("the log does not say %q", text)
		}
	}
}

// Serve runs a program until the test ends. run calls listening once it serves.
func Serve(t *testing.T, run func(ctx context.Context, log *slog.Logger, listening func(net.Addr)) error) (base string, log Log) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	addr, ended := make(chan net.Addr, 1), make(chan error, 1)
	log = make(Log, 1000)
	go func() {
		ended <- run(ctx, slog.New(slog.NewTextHandler(log, nil)), func(a net.Addr) { addr <- a })
	}()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-addr:
		return "http://" + a.String(), log
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return "", nil
	}
}
