// Package processtest runs tests of a test binary as processes of their own,
// which the test that starts them can kill.
//
// The process runs one test, which gets its arguments from Args, writes lines to
// its standard output, and ends when Signals says so. go test runs that test
// too, in which case Args skips it.
package processtest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// env has the arguments of a process, as JSON. It is the mark of a process, too.
const env = "FLOODGATE_PROCESSTEST"

// Args returns the arguments that the process was started with. It skips the test
// if it does not run in such a process.
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

// Signals returns two channels. The first one is closed when Begin is called, the
// second one when Stop is, or when the test that has started this process ends;
// the first one is closed then, too.
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

// Process is a process that Start has started. Its methods may be called
// concurrently, but Stop and Kill only once each.
type Process struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	read  chan struct{} // closed when all output has been read

	mu    sync.Mutex
	more  *sync.Cond // there are more lines, or no more will come
	lines map[string]int
	ended bool
}

// Start runs the test with this name, of the same test binary, in a process of
// its own. The process is killed when the test ends.
func Start(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.timeout=10m") //nolint:noctx // it ends with the test, by Cleanup
	cmd.Env = append(os.Environ(), env+"="+string(text))
	cmd.Stderr = os.Stderr
	return run(t, cmd)
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
// if it fails.
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
	return run(t, cmd)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	w.text = w.text[max(0, len(w.text)-2000):]
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

func run(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, cmd: cmd, stdin: stdin, read: make(chan struct{}), lines: map[string]int{}}
	p.more = sync.NewCond(&p.mu)
	go p.collect(stdout)
	t.Cleanup(p.Kill)
	return p
}

func (p *Process) collect(output io.Reader) {
	defer close(p.read)
	s := bufio.NewScanner(output)
	for s.Scan() {
		p.mu.Lock()
		p.lines[s.Text()]++
		p.mu.Unlock()
		p.more.Broadcast()
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.more.Broadcast()
}

// Count returns how often the process has written a line so far.
func (p *Process) Count(line string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[line]
}

// Wait waits until the process has written a line so often, and ends the test if
// the process ends before that.
func (p *Process) Wait(line string, times int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.lines[line] < times {
		if p.ended {
			p.t.Fatalf("a process ended after %d lines %q, of %d; it has written %v", p.lines[line], line, times, p.lines)
		}
		p.more.Wait()
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
	<-p.read
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("a process: %v", err)
	}
}

// Kill ends the process at once (SIGKILL), wherever it is. All that it has
// written is counted when Kill returns. Kill does nothing if it has ended.
func (p *Process) Kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.read
	_ = p.cmd.Wait()
}

// Terminate asks the process to end (SIGTERM), and waits for it. The test fails
// if the process does.
func (p *Process) Terminate() {
	p.t.Helper()
	if err := terminate(p.cmd.Process); err != nil {
		p.t.Fatal(err)
	}
	<-p.read
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("a process: %v", err)
	}
}
