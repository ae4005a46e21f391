package processtest

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

// env has the arguments of a process, as JSON. It is the mark of a process, too.
const env = "FLOODGATE_PROCESSTEST"

// Args returns the arguments that Start was given. It skips the test if Start has
// not started this process: go test runs that test, too.
func Args(t *testing.T) []string {
	t.Helper()
	text, found := os.LookupEnv(env)
	if !found {
		t.Skip("another test runs this one in processes of their own")
	}
	var args []string
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		t.Fatal(err)
	}
	return args
}

// Signals returns two channels, in the process that Start has started. The first
// one is closed when Begin is called, the second one when Stop is called or the
// test that has started this process ends; the first one is closed then, too.
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

// Process is a process that Start or StartProgram has started. Its methods may be
// called concurrently.
type Process struct {
	t       testing.TB
	process *process
	stdin   io.WriteCloser
	output  *lines
}

// Start runs the test with this name, of the same test binary, in a process of
// its own. The test gets the arguments from Args, writes lines to its standard
// output, and ends when Signals says so.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.timeout=10m") //nolint:noctx // it ends with the test, by Cleanup
	cmd.Env = append(os.Environ(), env+"="+string(text))
	cmd.Stderr = os.Stderr
	return start(t, cmd)
}

// program is the mark of a process that StartProgram has started.
const program = "FLOODGATE_PROCESSTEST_PROGRAM"

// Main is for the TestMain of a package main: it runs the tests, or the program
// if StartProgram has started the process.
func Main(m *testing.M, main func()) {
	if os.Getenv(program) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// StartProgram runs the program of the test binary with these arguments: its
// TestMain must call Main. What the program writes to its standard error is shown
// if the test fails.
func StartProgram(t testing.TB, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...) //nolint:noctx // it ends with the test, by Cleanup
	cmd.Env = append(os.Environ(), program+"=1")
	end := new(tail)
	cmd.Stderr = end
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of a program:\n%s", end)
		}
	})
	return start(t, cmd)
}

func start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
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

// Wait waits until the process has written a line so often, and ends the test if
// the process ends before that.
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

// Stop lets the process end, and waits for it. The test fails if the process
// does.
func (p *Process) Stop() {
	p.t.Helper()
	_ = p.stdin.Close()
	p.succeeds()
}

// Terminate asks the process to end (SIGTERM), and waits for it. The test fails
// if the process does.
func (p *Process) Terminate() {
	p.t.Helper()
	if err := terminate(p.process.cmd.Process); err != nil {
		p.t.Fatal(err)
	}
	p.succeeds()
}

// succeeds waits for the end of the process and fails the test if the process
// has failed.
func (p *Process) succeeds() {
	p.t.Helper()
	<-p.process.ended
	if p.process.err != nil {
		p.t.Errorf("a process: %v", p.process.err)
	}
}

// Kill ends the process at once (SIGKILL), whatever it does. Count counts all that
// it has written when Kill returns. Kill does nothing if the process has ended.
func (p *Process) Kill() { p.process.end(os.Kill) }
