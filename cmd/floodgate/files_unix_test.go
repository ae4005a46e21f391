//go:build unix

package main

import (
	"os"
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
