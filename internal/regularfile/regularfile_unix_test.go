//go:build unix

package regularfile_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/floodgate-go/floodgate/internal/regularfile"
)

// Links to regular files are read, at most one byte more than asked for. Nothing else is opened.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("file"), []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // of no interest any more
	for link, to := range map[string]string{"zero": "/dev/zero", "link": in("file"), "linked pipe": in("pipe"), "linked link": in("link")} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"zero": " is a device: want a regular file", "pipe": " is a named pipe: want a regular file", "linked pipe": " is a named pipe: want a regular file",
		"socket": " is a socket: want a regular file", ".": " is a folder: want a regular file", "none": "no such file",
	} {
		if text, err := regularfile.Read(in(name), 8); err == nil || !strings.Contains(err.Error(), in(name)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %s", name, text, err, want)
		}
	}
	for most, want := range map[int64]string{0: "1", 6: "1234567", 7: "12345678", 8: "12345678", 100: "12345678"} {
		for _, name := range []string{"file", "link", "linked link"} {
			if text, err := regularfile.Read(in(name), most); err != nil || string(text) != want {
				t.Errorf("%s, %d: %q, %v, want %q", name, most, text, err, want)
			}
		}
	}
}
