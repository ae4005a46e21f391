package processtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain runs one of two programs in other processes: the server of
// server_test.go if the first argument is "serve", else writeLines.
func TestMain(m *testing.M) {
	Main(m, func() {
		if len(os.Args) > 1 && os.Args[1] == "serve" {
			serveID()
		} else {
			writeLines()
		}
	})
}

// writeLines is the program of the tests below.
func writeLines() {
	fmt.Println(strings.Join(os.Args[1:], "+"))
	begin, stopped := Signals()
	<-begin
	for range 3 {
		fmt.Println("line")
	}
	<-stopped
	fmt.Println("stopped")
}

func TestAProcessThatIsStopped(t *testing.T) {
	p := Start(t, "a b", "c")
	p.Wait("a b+c", 1)
	p.Begin()
	p.Wait("line", 3)
	if p.Count("a b+c") != 1 || p.Count("stopped") != 0 {
		t.Error("its arguments are others, or it has ended")
	}
	p.Stop()
	if p.Count("stopped") != 1 || p.Count("line") != 3 {
		t.Error("it has not ended by itself")
	}
}

func TestAProcessThatIsKilled(t *testing.T) {
	p := Start(t)
	p.Begin()
	p.Wait("line", 3)
	p.Kill()
	p.Kill()
	if p.Count("stopped") != 0 {
		t.Error("it has ended by itself")
	}
}
