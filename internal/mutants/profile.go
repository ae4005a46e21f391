//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// cover runs the area's tests on the code as it is, and returns which code they
// run, as a coverage profile, and the stages with their time limits.
func cover(ctx context.Context, a area, goTool, results string) (profile []byte, stages []stage, err error) {
	broken, err := arguments(ctx, goTool, []string{"./" + a.dir + "/..."})
	if err != nil {
		return nil, nil, err
	}
	profile = []byte("mode: set\n")
	file := a.file(results, ".cover")
	for _, patterns := range a.tests {
		tests, err := arguments(ctx, goTool, patterns)
		if err != nil {
			return nil, nil, err
		}
		args := append([]string{"test", "-count=1", "-cover", "-coverpkg", strings.Join(broken, ","), "-coverprofile", file}, tests...)
		start := time.Now()
		if out, err := exec.CommandContext(ctx, goTool, args...).CombinedOutput(); err != nil {
			return nil, nil, fmt.Errorf("the tests of %s fail before anything is broken: %w\n%s", a.dir, err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		_, blocks, _ := bytes.Cut(text, []byte("\n"))
		profile = append(profile, blocks...)
		stages = append(stages, stage{Arguments: tests, Limit: 10*time.Second + 2*time.Since(start)})
	}
	declared, err := declarations(a)
	return append(profile, declared...), stages, err
}

// declarations returns profile lines for constants and variables outside of
// functions: a coverage profile knows only functions.
func declarations(a area) ([]byte, error) {
	var lines []byte
	err := filepath.WalkDir(a.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isCode(path) {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && (g.Tok == token.CONST || g.Tok == token.VAR) {
				from, to := set.Position(g.Pos()), set.Position(g.End())
				lines = fmt.Appendf(lines, "%s%s:%d.%d,%d.%d 1 1\n", module, filepath.ToSlash(path), from.Line, from.Column, to.Line, to.Column)
			}
		}
		return nil
	})
	return lines, err
}

const module = "github.com/floodgate-go/floodgate/"

// only returns the lines of a profile whose file matches. gremlins takes all
// other code for not covered, and leaves it alone.
func only(a area, profile []byte, files *regexp.Regexp) []byte {
	var kept []byte
	for line := range bytes.Lines(profile) {
		file, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte(module+a.dir+"/")), []byte(":"))
		if bytes.HasPrefix(line, []byte("mode:")) || files.Match(file) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// points returns a profile that covers nothing but the given mutants.
func points(a area, ms []mutant) []byte {
	lines := []byte("mode: set\n")
	for _, m := range ms {
		lines = fmt.Appendf(lines, "%s%s/%s:%d.%d,%d.%d 1 1\n", module, a.dir, m.File, m.Line, m.Column, m.Line, m.Column)
	}
	return lines
}
