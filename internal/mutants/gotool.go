//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// plan tells the program how to act as gremlins' go command. It is handed over
// in the environment.
type plan struct {
	Go      string   // the real go command
	Root    string   // the module's directory
	Area    string   // the directory whose code is broken
	Profile string   // the coverage profile to hand to gremlins
	Log     string   // where findings are appended
	Stages  []stage  // run in this order until one fails
	Path    string   // PATH without this program
	Limit   duration // time for all stages together
	Schema  string   // a file with the numbers of the breaks, "" for none
}

type duration = time.Duration

// stage is a run of go test.
type stage struct {
	Arguments []string // flags and packages
	Limit     duration
	Binaries  []binary // the tests of the packages, compiled with the schemas
}

const planVariable = "FLOODGATE_MUTANTS_PLAN"

// finding is what the stages made of one break. gremlins knows no exit status
// for a test that was stopped.
type finding struct {
	position
	Status string
}

// The exit statuses of go test as gremlins reads them.
const (
	exitKilled    = 1
	exitNotViable = 2
)

// Coefficient must be unleash.timeout-coefficient in .gremlins.yaml.
const coefficient = 60

// actAsGo runs a command of gremlins, and returns the exit status.
func actAsGo(p plan, args []string) int {
	if err := errors.Join(os.Setenv("PATH", p.Path), os.Unsetenv(planVariable)); err != nil {
		return orFail(err)
	}
	switch {
	case args[0] == "test" && slices.Contains(args, "-coverprofile"):
		// gremlins stops a test after the coefficient times what this takes.
		time.Sleep(p.Limit / coefficient)
		return orFail(copyFile(args[slices.Index(args, "-coverprofile")+1], p.Profile))
	case args[0] == "test":
		return p.test()
	default:
		cmd := exec.CommandContext(context.Background(), p.Go, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return orFail(cmd.Run())
	}
}

func orFail(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 1
	}
	return 0
}

// test runs the stages against the break in the working directory.
func (p plan) test() int {
	// The working directory is the area's in a copy of the module.
	cwd, err := os.Getwd()
	if err != nil {
		return orFail(err)
	}
	at, err := findBreak(filepath.Join(p.Root, p.Area), cwd)
	if err != nil {
		return orFail(err)
	}
	ids, err := p.schema()
	if err != nil {
		return orFail(err)
	}
	id := ids[at.String()]
	root := strings.TrimSuffix(cwd, string(filepath.Separator)+filepath.FromSlash(p.Area))
	status, output := statusLived, ""
	if id == notViable {
		status = statusNotViable
	}
	for _, s := range p.Stages {
		if status != statusLived {
			break
		}
		if id > 0 {
			status, output = s.runBinaries(id)
		} else {
			status, output = s.runGo(p.Go, root)
		}
	}
	if err := p.note(finding{at.position, status}); err != nil {
		return orFail(err)
	}
	fmt.Print(output)
	switch status {
	case statusLived:
		return 0
	case statusKilled:
		return exitKilled
	default:
		return exitNotViable
	}
}

// schema returns the numbers of the breaks that the compiled tests can make.
func (p plan) schema() (ids map[string]int, err error) {
	if p.Schema == "" {
		return nil, nil
	}
	text, err := os.ReadFile(p.Schema)
	if err != nil {
		return nil, err
	}
	return ids, json.Unmarshal(text, &ids)
}

// runBinaries runs the stage's compiled tests with a break of the schema.
func (s stage) runBinaries(id int) (status, output string) {
	env := []string{brokenVariable + "=" + strconv.Itoa(id)}
	for _, b := range s.Binaries {
		for _, p := range b.Parts {
			s.Limit = p.Limit
			if status, output = s.run(b.Dir, env, b.Path, "-test.skip="+b.Skip, p.Flag, "-test.count=1", "-test.failfast", "-test.paniconexit0",
				"-test.timeout="+(p.Limit+time.Minute).String()); status != statusLived {
				return status, output
			}
		}
	}
	return statusLived, output
}

// runGo compiles and runs the stage's tests in the module at root.
func (s stage) runGo(goTool, root string) (status, output string) {
	args := append([]string{"test", "-vet=off", "-count=1", "-failfast", "-timeout", (s.Limit + 2*time.Minute).String()}, s.Arguments...)
	return s.run(root, nil, goTool, args...)
}

// run runs a command for as long as the stage may take.
func (s stage) run(dir string, env []string, name string, args ...string) (status, output string) {
	ctx, stop := context.WithTimeout(context.Background(), s.Limit)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// Tests start servers and a break may keep a test from stopping them: all
	// of them are in one process group, and end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = group()
	}
	switch {
	case ctx.Err() != nil:
		return statusTimedOut, out.String()
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return statusLived, out.String()
	case bytes.Contains(out.Bytes(), []byte("[build failed]")) || bytes.Contains(out.Bytes(), []byte("[setup failed]")):
		return statusNotViable, out.String()
	default:
		return statusKilled, out.String()
	}
}

// note appends a finding to the log. Several processes do so at a time.
func (p plan) note(f finding) error {
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = log.Write(append(line, '\n'))
	return errors.Join(err, log.Close())
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// limitMemory keeps a break that allocates without end from taking the machine
// down. The limit is inherited by the tests.
func limitMemory() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &l); err != nil {
		return err
	}
	l.Cur = min(l.Max, 12<<30)
	return syscall.Setrlimit(syscall.RLIMIT_AS, &l)
}
