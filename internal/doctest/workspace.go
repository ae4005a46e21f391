package doctest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const module = "github.com/floodgate-go/floodgate"

var moduleLine = regexp.MustCompile(`(?m)^module .*$`)

// Workspace is a module of somebody else's that has the documents' code: every
// program and every fragment is a package of it. One binary has all programs, so
// that there is one to link.
type Workspace struct {
	Root string // of this module
	Dir  string // an empty folder
	// Module is the folder, below Root, of the go.mod whose requirements the
	// workspace has. With "", the workspace has the code that uses this module
	// only; with another, the programs with the comment before.
	Module string
	// Servers replaces the addresses of servers that blocks need: by the server's
	// name, what the block has, and what is there.
	Servers map[string][2]string

	programs []*Block
	serving  map[*Block]string // the programs that serve, and where
	tests    []*Block
	places   map[string]*Block // by the folder of a package
}

// Add writes the packages of the pages' Go blocks.
func (w *Workspace) Add(pages []*Page) ([]Problem, error) {
	w.places, w.serving = map[string]*Block{}, map[*Block]string{}
	for _, name := range []string{"fragments", "programs"} {
		if err := os.MkdirAll(filepath.Join(w.Dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	var problems []Problem
	for _, page := range pages {
		for _, b := range page.Blocks {
			if b.has("before") != (w.Module != "") {
				continue
			}
			if b.Lang == "" && strings.HasPrefix(b.Text, "package ") {
				problems = append(problems, b.problem("a block of Go needs the language go"))
			}
			switch {
			case b.isProgram():
				if err := w.addProgram(b); err != nil {
					return nil, err
				}
			case b.isTest():
				name := fmt.Sprintf("t%03d", len(w.tests))
				w.tests = append(w.tests, b)
				w.places["tests/"+name] = b
				if err := w.write("tests/"+name+"/block_test.go", w.text(b)); err != nil {
					return nil, err
				}
			case b.isFragment():
				found, err := w.addFragment(b)
				if err != nil {
					return nil, err
				}
				problems = append(problems, found...)
			}
		}
	}
	if err := w.addMain(); err != nil {
		return nil, err
	}
	return problems, w.addModule()
}

// text returns a block with the addresses of the servers that it needs.
func (w *Workspace) text(b *Block) string {
	text := b.Text
	for name := range strings.FieldsSeq(b.Directives["needs"]) {
		if s, ok := w.Servers[name]; ok {
			text = strings.ReplaceAll(text, s[0], s[1])
		}
	}
	return text
}

// missing returns the name of a server that a block needs and that is not there.
func (w *Workspace) missing(b *Block) string {
	for name := range strings.FieldsSeq(b.Directives["needs"]) {
		if _, ok := w.Servers[name]; !ok {
			return name
		}
	}
	return ""
}

// addProgram writes a program as a package, whose Main is the program's main.
func (w *Workspace) addProgram(b *Block) error {
	name := fmt.Sprintf("p%03d", len(w.programs))
	w.programs = append(w.programs, b)
	w.places["programs/"+name] = b
	text := strings.TrimPrefix(w.text(b), "package main\n")
	if b.has("serves") {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		w.serving[b] = address
		text = strings.ReplaceAll(text, documented, address)
	}
	text = fmt.Sprintf("package %s\n//line %s:%d\n%s", name, b.Page.File, b.Line+1, text)
	if err := w.write("programs/"+name+"/block.go", text); err != nil {
		return err
	}
	return w.write("programs/"+name+"/main.go", "package "+name+"\n\nfunc Main() { main() }\n")
}

func (w *Workspace) addFragment(b *Block) ([]Problem, error) {
	pieces, problem := b.pieces()
	if problem != nil {
		return []Problem{*problem}, nil
	}
	for _, p := range pieces {
		name := fmt.Sprintf("f%03d", len(w.places))
		prelude, fragment, err := p.source(name, b.Page.File)
		if err != nil {
			return []Problem{b.problem("%v", err)}, nil
		}
		w.places["fragments/"+name] = b
		if err := w.write("fragments/"+name+"/prelude.go", prelude); err != nil {
			return nil, err
		}
		if err := w.write("fragments/"+name+"/block.go", fragment); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// addMain writes the program that starts the one whose number it is given.
func (w *Workspace) addMain() error {
	var imports, cases strings.Builder
	for i := range w.programs {
		fmt.Fprintf(&imports, "\t\"example.com/docs/programs/p%03d\"\n", i)
		fmt.Fprintf(&cases, "\tcase \"%d\":\n\t\tp%03d.Main()\n", i, i)
	}
	return w.write("main.go", "package main\n\nimport (\n\t\"os\"\n"+imports.String()+")\n\nfunc main() {\n\tnumber := os.Args[1]\n"+
		"\tos.Args = os.Args[:1]\n\tswitch number {\n"+cases.String()+"\t}\n}\n")
}

// addModule writes a go.mod with the requirements of w.Module, so that the
// module cache has everything.
func (w *Workspace) addModule() error {
	text, err := os.ReadFile(filepath.Join(w.Root, w.Module, "go.mod"))
	if err != nil {
		return err
	}
	mod := moduleLine.ReplaceAllLiteralString(string(text), "module example.com/docs")
	if w.Module == "" {
		mod += "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + w.Root + "\n"
	} else {
		mod = strings.ReplaceAll(mod, " => ../", " => "+w.Root+"/") // this module and its adapters
	}
	if err := w.write("go.mod", mod); err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(w.Root, w.Module, "go.sum"))
	if err != nil {
		return err
	}
	return w.write("go.sum", string(sum))
}

func (w *Workspace) write(name, text string) error {
	path := filepath.Join(w.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// binary returns the path of the program that has all programs.
func (w *Workspace) binary() string { return filepath.Join(w.Dir, "bin", "docs") }

// Fetch loads the modules that the module cache does not have, unless w.Module
// is "": whoever runs the tests of this module has its modules.
func (w *Workspace) Fetch(ctx context.Context) error {
	if w.Module == "" {
		return nil
	}
	cmd := w.command(ctx, "list", "-deps", "./...")
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go list: %w\n%s", err, out)
	}
	return nil
}

// Build compiles all packages, and links the programs. What the compiler says is
// reported at the block's place.
func (w *Workspace) Build(ctx context.Context) []Problem {
	// Without debug information, linking takes half as long. With the flag -o, packages that no program imports are not compiled.
	for _, args := range [][]string{{"build", "./fragments/...", "./programs/..."}, {"build", "-ldflags=-s -w", "-o", w.binary(), "."}} {
		if out, err := w.command(ctx, args...).CombinedOutput(); err != nil {
			return compilerProblems(string(out), err)
		}
	}
	return nil
}

var compilerLine = regexp.MustCompile(`^(?:.*/[fpt][0-9]+/)?([^:]+\.md):(\d+)(?::\d+)?: (.*)$`)

func compilerProblems(out string, err error) []Problem {
	var problems []Problem
	rest := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if m := compilerLine.FindStringSubmatch(line); m != nil {
			at, _ := strconv.Atoi(m[2]) // digits
			problems = append(problems, Problem{m[1], at, m[3]})
		} else if !strings.HasPrefix(line, "#") {
			rest += line + "\n"
		}
	}
	if len(problems) == 0 {
		problems = append(problems, Problem{"", 0, fmt.Sprintf("go build: %v\n%s", err, rest)})
	}
	return problems
}

// command is a go command in the workspace, without the network.
func (w *Workspace) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = w.Dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
	return cmd
}
