// Package leftout skips the tests whose server or browser is not installed, and says which ones. go
// test hides what passing packages print, so a skipped test would go unnoticed.
//
//   - FLOODGATE_REQUIRE_SERVERS=1 makes such a test fail. .ci/run sets it.
//   - FLOODGATE_LEFT_OUT names a file to which each skipped test is appended.
//     make test sets it, and prints the file at its end.
//   - Otherwise each test process says once on the terminal, if there is one,
//     what is missing.
package leftout

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// Skip skips the test because something is not installed. how says what, and how to install it:
// "redis-server is not installed: apt-get install redis-server".
func Skip(t testing.TB, how string) {
	t.Helper()
	if os.Getenv("FLOODGATE_REQUIRE_SERVERS") == "1" {
		t.Fatal(how)
	}
	if name := os.Getenv("FLOODGATE_LEFT_OUT"); name != "" {
		if err := appendLine(name, t.Name()+": "+how); err != nil {
			t.Fatal(err)
		}
	} else {
		onTerminal.Do(func() { _ = appendLine("/dev/tty", "left out: "+t.Name()+" and perhaps others: "+how) })
	}
	t.Skip(how)
}

var onTerminal sync.Once

// appendLine appends with one write, so that lines of several processes stay whole.
func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
