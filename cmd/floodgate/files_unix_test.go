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

// A file without an end is not read to its end.
func TestFilesWithoutAnEnd(t *testing.T) {
	const zero = "/dev/zero"
	good := file(t, "good.yaml", "policies: [{name: a, limits: 1/h}]\n")
	for _, args := range [][]string{{"check", zero}, {"explain", zero}, {"replay", zero, good}, {"top", zero, "--store", "redis://127.0.0.1:1"}} {
		if _, errs := expect(t, exitFailed, "", args...); !strings.Contains(errs, zero+": has more than 1048576 bytes") {
			t.Errorf("%q: prints %q", args, errs)
		}
	}
}

// Every command that is waiting ends when it is interrupted.
func TestAnInterruptEndsEveryCommand(t *testing.T) {
	good := file(t, "good.yaml", limits)
	for n, args := range [][]string{
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
		if err := c.Process.Signal([]os.Signal{os.Interrupt, syscall.SIGTERM}[n%2]); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
			t.Errorf("%q: %v, want exit status 130", args, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Output to a terminal is for a person. Output to a file or a pipe is for a program.
func TestWhoReadsAnOutput(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("CLICOLOR_FORCE", "")
	device, err := os.Open(os.DevNull)
	plain, err2 := os.Open(file(t, "plain", ""))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if !forPeople(device) || forPeople(plain) || forPeople(full{}) {
		t.Errorf("for a person are a device: %t, a file: %t, something else: %t", forPeople(device), forPeople(plain), forPeople(full{}))
	}
	if err := errors.Join(device.Close(), plain.Close()); err != nil || forPeople(device) {
		t.Errorf("%v, or a closed device is for a person", err)
	}
}
