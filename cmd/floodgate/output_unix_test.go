//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe or a device is written to, and not replaced by a file.
func TestAReportIntoANamedPipe(t *testing.T) {
	good, log := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "access.log", accessLog(3))
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		f, err := os.Open(pipe)
		if err != nil {
			read <- err.Error()
			return
		}
		text, _ := io.ReadAll(f)
		_ = f.Close()
		read <- string(text)
	}()
	expect(t, exitFine, "", "replay", good, log, "-o", pipe)
	if got := <-read; !strings.Contains(got, "3 requests") {
		t.Errorf("the reader of the pipe got %q", got)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is replaced: %v", err)
	}
}
