//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file without an end is not read to its end, and a password's file that is none is
// not opened.
func TestFilesWithoutAnEnd(t *testing.T) {
	dir := t.TempDir()
	pipe, zero := filepath.Join(dir, "pipe"), filepath.Join(dir, "zero")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Fatal(err)
	}
	good := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]\n")
	secret := func(path string) string {
		return file(t, "secret.yaml", "store: {redis: {address: '127.0.0.1:1', password: {file: '"+path+"'}}}\npolicies: [{name: a, limits: 1/h}]\n")
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitFailed, zero + ": has more than 1048576 bytes", []string{"check", zero}},
		{exitFailed, zero + ": has more than 1048576 bytes", []string{"explain", zero}},
		{exitFailed, zero + ": has more than 1048576 bytes", []string{"replay", zero, good}},
		{exitFailed, zero + ": has more than 1048576 bytes", []string{"top", zero}},
		{exitUsage, zero + ": has more than 67108864 bytes", []string{"explain", good, "--data", "@" + zero}},
		{exitFailed, "store.redis.password: " + zero + " is a device: want a regular file", []string{"top", secret(zero)}},
		{exitFailed, "store.redis.password: " + pipe + " is a named pipe: want a regular file", []string{"top", secret(pipe)}},
	} {
		if out, errs := expect(t, c.code, "", c.args...); !strings.Contains(errs, c.want) {
			t.Errorf("%q: prints %q and %q, want %s", c.args, out, errs, c.want)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	expect(t, exitFine, "", "check", link)
}

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

// Others may read a report, as any file that a program writes.
func TestTheModeOfAReport(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report")
	if err := writeOutput(name, func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v, want the mode 644", info, err)
	}
}

// A report that cannot be written leaves nothing behind.
func TestAReportThatFailsLeavesNoFile(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("the report cannot be made")
	if err := writeOutput(filepath.Join(dir, "report"), func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("says %v, want %v", err, broken)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 0 {
		t.Errorf("the folder has %v, %v, want nothing", found, err)
	}
}

// A report names the files in the order of the command line.
func TestTheFilesOfAReplayAreInOrder(t *testing.T) {
	first, second := file(t, "first.yaml", "policies: [{name: a, limits: 1/h}]"), file(t, "second.yaml", "policies: [{name: a, limits: 1/h}]")
	log := `192.0.2.1 - - [20/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1` + "\n"
	out, _ := expect(t, exitFine, log, "replay", first, "-", "--against", second, "--quiet")
	if i, j := strings.Index(out, "first.yaml: "), strings.Index(out, "second.yaml: "); i < 0 || j < i {
		t.Errorf("says\n%s\nwant first.yaml before second.yaml", out)
	}
}

// Every command that is waiting ends when it is interrupted.
func TestAnInterruptEndsEveryCommand(t *testing.T) {
	good := file(t, "good.yaml", limits)
	for _, args := range [][]string{
		{"check", "PIPE"}, {"explain", "PIPE"}, {"replay", "PIPE", good}, {"replay", good, "PIPE"}, {"explain", good, "--data", "@PIPE"},
		{"inspect", "PIPE", "--store", "redis://127.0.0.1:1", "--policy", "api"}, {"top", "PIPE", "--store", "redis://127.0.0.1:1"},
	} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		for i, a := range args {
			args[i] = map[string]string{"PIPE": pipe, "@PIPE": "@" + pipe}[a]
			if args[i] == "" {
				args[i] = a
			}
		}
		c := exec.CommandContext(t.Context(), os.Args[0], args...)
		c.Env = append(os.Environ(), asProgram+"=1")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns once the command has opened it
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
			t.Errorf("%q: %v, want exit status %d", args, err, exitInterrupted)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
