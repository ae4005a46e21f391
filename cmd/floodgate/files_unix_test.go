//go:build unix

package main

import (
	"errors"
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

// Every command that is waiting ends when it is interrupted.
func TestAnInterruptEndsEveryCommand(t *testing.T) {
	good := file(t, "good.yaml", limits)
	for _, args := range [][]string{
		{"check", "PIPE"}, {"explain", "PIPE"}, {"replay", "PIPE", good}, {"replay", good, "PIPE"},
		{"inspect", "PIPE", "--store", "redis://127.0.0.1:1", "--policy", "api"}, {"top", "PIPE", "--store", "redis://127.0.0.1:1"},
	} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		for i, a := range args {
			if a == "PIPE" {
				args[i] = pipe
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
