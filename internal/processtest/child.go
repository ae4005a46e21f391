package processtest

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// Signals returns two channels, in a process that Start has started. The first one is closed when
// Begin is called, the second one when Stop is called or the test that has started this process
// ends; the first one is closed then, too.
func Signals() (begin, stopped <-chan struct{}) {
	b, s := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(s)
		_, _ = io.ReadFull(os.Stdin, make([]byte, 1))
		close(b)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return b, s
}

// Process is a process that Start has started. Its methods may be called concurrently.
type Process struct {
	t       testing.TB
	process *process
	stdin   io.WriteCloser
	output  *lines
}

// program is the mark of a process that runs the program of a test binary.
const program = "FLOODGATE_PROCESSTEST_PROGRAM"

// Main is for TestMain. It runs the tests of the package, and in the processes that Start and
// Command make it calls main: the program of the test binary, which finds its arguments in os.Args.
func Main(m *testing.M, main func()) {
	if os.Getenv(program) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Command returns the command that runs the program of the test binary with these arguments. The
// TestMain of the test binary must call Main.
func Command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...) //nolint:noctx // the caller ends it with the test
	cmd.Env = append(os.Environ(), program+"=1")
	return cmd
}

// Start runs the program of the test binary with these arguments, as Command does. What the program
// writes to its standard error is shown if the test fails.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	cmd := Command(args...)
	end := new(tail)
	cmd.Stderr = end
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of a program:\n%s", end)
		}
	})
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, stdin: stdin, output: newLines()}
	cmd.Stdout = p.output
	if p.process, err = run(t, cmd, p.output.end); err != nil {
		t.Fatal(err)
	}
	return p
}

// Count returns how often the process has written a line so far.
func (p *Process) Count(line string) int { return p.output.count(line) }

// Wait waits until the process has written a line so often, and ends the test if the process ends
// before that.
func (p *Process) Wait(line string, times int) {
	p.t.Helper()
	if written, ok := p.output.wait(line, times); !ok {
		p.t.Fatalf("a process ended after %d lines %q, of %d; it has written %v", written[line], line, times, written)
	}
}

// Begin tells the process to begin.
func (p *Process) Begin() {
	p.t.Helper()
	if _, err := p.stdin.Write([]byte{'\n'}); err != nil {
		p.t.Fatal(err)
	}
}

// Stop lets the process end, and waits for it. The test fails if the process does.
func (p *Process) Stop() { Stop(p) }

// Stop lets the processes end, all at the same time, and waits for them. The test fails if one of
// them does. With the race detector a process takes a second to end.
func Stop(ps ...*Process) {
	for _, p := range ps {
		_ = p.stdin.Close()
	}
	for _, p := range ps {
		p.t.Helper()
		p.succeeds()
	}
}

// Terminate asks the process to end (SIGTERM), and waits for it. The test fails if the process
// does.
func (p *Process) Terminate() {
	p.t.Helper()
	if err := terminate(p.process.cmd.Process); err != nil {
		p.t.Fatal(err)
	}
	p.succeeds()
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.process.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// succeeds waits for the end of the process and fails the test if the process has failed.
func (p *Process) succeeds() {
	p.t.Helper()
	<-p.process.ended
	if p.process.err != nil {
		p.t.Errorf("a process: %v", p.process.err)
	}
}

// Kill ends the process at once (SIGKILL), whatever it does. Count counts all that it has written
// when Kill returns. Kill does nothing if the process has ended.
func (p *Process) Kill() { p.process.end(os.Kill) }
