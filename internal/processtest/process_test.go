package processtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/internal/processtest"
)

// TestProcess is the process of the tests below.
func TestProcess(t *testing.T) {
	args := processtest.Args(t)
	fmt.Println(strings.Join(args, "+"))
	begin, stopped := processtest.Signals()
	<-begin
	for range 3 {
		fmt.Println("line")
	}
	<-stopped
	fmt.Println("stopped")
}

func TestAProcessThatIsStopped(t *testing.T) {
	p := processtest.Start(t, "TestProcess", "a b", "c")
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
	p := processtest.Start(t, "TestProcess")
	p.Begin()
	p.Wait("line", 3)
	p.Kill()
	p.Kill()
	if p.Count("stopped") != 0 {
		t.Error("it has ended by itself")
	}
}
