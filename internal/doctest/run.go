package doctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience is how long a program of a document may take: it has to end by itself. Tests change it.
var patience = time.Minute

// RunPrograms runs the programs, a few at a time, and compares what they print.
func (w *Workspace) RunPrograms(ctx context.Context) []Problem {
	return each(w.programs, func(i int, b *Block) []Problem {
		if w.missing(b) != "" {
			return nil
		}
		dir, err := w.folder(b.Page)
		if err != nil {
			return []Problem{b.problem("%v", err)}
		}
		if address, serves := w.serving[b]; serves {
			stop, err := serve(ctx, dir, address, w.binary(), strconv.Itoa(i))
			if err != nil {
				return []Problem{b.problem("the program: %v", err)}
			}
			defer stop()
			return w.askServer(ctx, dir, b)
		}
		out, err := run(ctx, dir, nil, w.binary(), strconv.Itoa(i))
		if err != nil {
			return []Problem{b.problem("the program: %v\n%s", err, out)}
		}
		want := b.output()
		if want == nil {
			return nil
		}
		if text := want.same(w.back(out), want.wanted()); text != "" {
			return []Problem{want.problem("the program above %s", text)}
		}
		return nil
	})
}

// askServer runs the commands of the block below a program that serves.
func (w *Workspace) askServer(ctx context.Context, dir string, b *Block) []Problem {
	commands := b.output()
	if commands == nil {
		return nil
	}
	found, err := w.runCommands(ctx, commands, dir, w.serving[b])
	if err != nil {
		return []Problem{commands.problem("%v", err)}
	}
	return found
}

// back puts the addresses that the documents have in place of those of the test's servers.
func (w *Workspace) back(out string) string {
	for _, s := range w.Servers {
		out = strings.ReplaceAll(out, s[1], s[0])
	}
	return out
}

// RunTests runs the test files.
func (w *Workspace) RunTests(ctx context.Context) []Problem {
	if len(w.tests) == 0 {
		return nil
	}
	out, err := w.command(ctx, "test", "-vet=off", "-ldflags=-s -w", "./tests/...").CombinedOutput()
	if err == nil {
		return nil
	}
	var problems []Problem
	for i, b := range w.tests {
		if strings.Contains(string(out), fmt.Sprintf("FAIL\texample.com/docs/tests/t%03d", i)) {
			problems = append(problems, b.problem("go test: %v\n%s", err, out))
		}
	}
	if len(problems) == 0 {
		problems = append(problems, Problem{"", 0, fmt.Sprintf("go test: %v\n%s", err, out)})
	}
	return problems
}

// run runs a command that ends by itself, and returns all that it prints.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = errors.Join(fmt.Errorf("it does not end within %v", patience), err)
	}
	return out.String(), err
}

// each calls f for the blocks, four at a time, and returns all problems in the blocks' order.
// Blocks that need a server come last and one at a time: the stores have short deadlines, which a
// busy machine exceeds.
func each(blocks []*Block, f func(i int, b *Block) []Problem) (problems []Problem) {
	found := make([][]Problem, len(blocks))
	places := make(chan struct{}, 4)
	var group sync.WaitGroup
	for i, b := range blocks {
		if b.has("needs") {
			continue
		}
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			found[i] = f(i, b)
		})
	}
	group.Wait()
	for i, b := range blocks {
		if b.has("needs") {
			found[i] = f(i, b)
		}
	}
	for _, f := range found {
		problems = append(problems, f...)
	}
	return problems
}
