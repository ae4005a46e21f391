package doctest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	started = regexp.MustCompile(`go run \./((?:cmd|examples)/[a-z0-9/]+)`)
	target  = regexp.MustCompile(`(?m)^\s*make ([a-z-]+)`)
)

const documented = "127.0.0.1:8080" // where the documents' servers listen

// CheckShell returns the commands of shell blocks that name a program or a make
// target which does not exist. They are not run.
func CheckShell(root string, pages []*Page) ([]Problem, error) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, p := range pages {
		for _, b := range p.Blocks {
			if b.Lang != "sh" && b.Lang != "bash" && b.Lang != "console" {
				continue
			}
			for _, m := range started.FindAllStringSubmatch(b.Text, -1) {
				if _, err := os.Stat(filepath.Join(root, m[1], "main.go")); err != nil {
					problems = append(problems, b.problem("there is no program ./%s", m[1]))
				}
			}
			for _, m := range target.FindAllStringSubmatch(b.Text, -1) {
				if !strings.Contains("\n"+string(makefile), "\n"+m[1]+":") {
					problems = append(problems, b.problem("the Makefile has no target %s", m[1]))
				}
			}
		}
	}
	return problems, nil
}

// consoles returns the blocks of commands that are run, and what is wrong with
// those that cannot be.
func consoles(pages []*Page) (blocks []*Block, problems []Problem) {
	for _, p := range pages {
		for i, b := range p.Blocks {
			commands := b.commands()
			if b.Lang != "console" || b.has("not run") || i > 0 && p.Blocks[i-1].isProgram() && p.Blocks[i-1].output() == b {
				continue
			}
			if len(commands) == 0 {
				problems = append(problems, b.problem(`a console block needs a command behind "$ "`))
				continue
			}
			runs := true
			for _, c := range commands {
				if !b.has("server") && !strings.HasPrefix(c.line, "floodgate ") && !started.MatchString(c.line) && !strings.HasPrefix(c.line, "cat ") {
					runs = false
					problems = append(problems, Problem{p.File, c.at, "the test cannot run this: " + c.line + "; see <!-- server --> and <!-- not run -->"})
				}
			}
			if runs {
				blocks = append(blocks, b)
			}
		}
	}
	return blocks, problems
}

// RunConsoles runs the commands of console blocks and compares what they print.
func (w *Workspace) RunConsoles(ctx context.Context, pages []*Page) []Problem {
	blocks, problems := consoles(pages)
	if err := w.buildCommands(ctx, blocks); err != nil {
		return append(problems, Problem{"", 0, err.Error()})
	}
	return append(problems, each(blocks, func(_ int, b *Block) []Problem {
		if w.missing(b) != "" {
			return nil
		}
		found, err := w.runConsole(ctx, b)
		if err != nil {
			return []Problem{b.problem("%v", err)}
		}
		return found
	})...)
}

// buildCommands builds the programs of this tree that blocks start, each once.
func (w *Workspace) buildCommands(ctx context.Context, blocks []*Block) error {
	var paths []string
	for _, b := range blocks {
		if server := strings.TrimPrefix(b.Directives["server"], "./"); server != "" {
			paths = append(paths, server)
		}
		if strings.Contains(b.Text, "$ floodgate") {
			paths = append(paths, "cmd/floodgate")
		}
		for _, m := range started.FindAllStringSubmatch(b.Text, -1) {
			paths = append(paths, m[1])
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", w.commandPath(path), "./"+path)
		cmd.Dir = w.Root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build ./%s: %w\n%s", path, err, out)
		}
	}
	return nil
}

// commandPath is where the program of a folder of this tree is built to.
func (w *Workspace) commandPath(path string) string {
	return filepath.Join(w.Dir, "commands", strings.ReplaceAll(strings.TrimPrefix(path, "cmd/"), "/", "-"))
}

func (w *Workspace) runConsole(ctx context.Context, b *Block) (problems []Problem, err error) {
	dir, err := w.folder(b.Page)
	if err != nil {
		return nil, err
	}
	address := documented
	if path := strings.TrimPrefix(b.Directives["server"], "./"); path != "" {
		stop, at, err := w.serve(ctx, dir, path)
		if err != nil {
			return nil, err
		}
		defer stop()
		address = at
	}
	return w.runCommands(ctx, b, dir, address)
}

// runCommands runs the commands of a block in a folder, with the server that the
// documents have at another address.
func (w *Workspace) runCommands(ctx context.Context, b *Block, dir, address string) (problems []Problem, err error) {
	env := []string{"CURL_HOME=" + dir, "PATH=" + filepath.Join(w.Dir, "commands") + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, c := range b.commands() {
		line := started.ReplaceAllStringFunc(c.line, func(s string) string { return w.commandPath(started.FindStringSubmatch(s)[1]) })
		line = strings.ReplaceAll(line, documented, address)
		for _, name := range strings.Fields(b.Directives["needs"]) {
			line = strings.ReplaceAll(line, w.Servers[name][0], w.Servers[name][1])
		}
		out, err := run(ctx, dir, env, "sh", "-c", line)
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 0 || exit.ExitCode() == 127) {
			return nil, fmt.Errorf("%s: %w\n%s", c.line, err, out)
		}
		out = strings.ReplaceAll(w.back(out), address, documented)
		if text := b.same(out, c.want); text != "" {
			problems = append(problems, Problem{b.Page.File, c.at, c.line + " " + text})
		}
	}
	return problems, nil
}

// folder makes the folder in which a page's commands run.
func (w *Workspace) folder(p *Page) (string, error) {
	dir, err := os.MkdirTemp(w.Dir, "page")
	if err != nil {
		return "", err
	}
	if err := os.Symlink(filepath.Join(w.Root, "examples"), filepath.Join(dir, "examples")); err != nil {
		return "", err
	}
	// curl draws its progress when its output is no terminal.
	if err := os.WriteFile(filepath.Join(dir, ".curlrc"), []byte("silent\nshow-error\n"), 0o600); err != nil {
		return "", err
	}
	for _, b := range p.Blocks {
		if name := b.Directives["file"]; name != "" {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(b.Text), 0o600); err != nil {
				return "", err
			}
		}
	}
	return dir, nil
}

// serve starts a program of this tree that serves, with the flag -addr. It
// returns what ends it, and its address.
func (w *Workspace) serve(ctx context.Context, dir, path string) (stop func(), address string, err error) {
	if address, err = freeAddress(); err != nil {
		return nil, "", err
	}
	stop, err = serve(ctx, dir, address, w.commandPath(path), "-addr", address)
	return stop, address, err
}

// freeAddress returns an address at which nothing listens. Its port is below those that systems give
// to connections: no other test gets it before the program listens.
func freeAddress() (address string, err error) {
	for range 100 {
		address = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		var listener net.Listener
		if listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", err
}

// serve starts a program and waits until it listens. It returns what ends it.
func serve(ctx context.Context, dir, address, name string, args ...string) (stop func(), err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	for began := time.Now(); time.Since(began) < patience; {
		if conn, err := (&net.Dialer{Timeout: 100 * time.Millisecond}).DialContext(ctx, "tcp", address); err == nil {
			return stop, conn.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	stop()
	return nil, fmt.Errorf("%s does not listen within %v", filepath.Base(name), patience)
}
