//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	statusKilled     = "KILLED"      // a test failed
	statusLived      = "LIVED"       // no test failed
	statusTimedOut   = "TIMED OUT"   // the tests did not end
	statusNotCovered = "NOT COVERED" // it was left alone
	statusNotViable  = "NOT VIABLE"  // it does not compile
)

// mutant is one break of the code and what the tests made of it.
type mutant struct {
	position
	Type   string
	Status string
	key    key
}

// key names a mutant without its position, so that edits elsewhere in the file,
// and a move to another file, do not matter.
type key struct {
	area, function, mutator, source string
}

// readReport reads what gremlins has written. findings tell apart what gremlins
// calls not viable.
func readReport(file string, findings map[position]string) ([]mutant, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var report struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var ms []mutant
	for _, f := range report.Files {
		for _, m := range f.Mutations {
			at := position{f.Name, m.Line, m.Column}
			if m.Status == statusNotViable && findings[at] != "" {
				m.Status = findings[at]
			}
			ms = append(ms, mutant{position: at, Type: m.Type, Status: m.Status})
		}
	}
	sortMutants(ms)
	return ms, nil
}

func sortMutants(ms []mutant) {
	slices.SortFunc(ms, func(a, b mutant) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), strings.Compare(a.Type, b.Type))
	})
}

// readFindings reads the log of the go command's stand-in. Of two breaks at one
// position, such as < made <= and >=, a test that did not end says more.
func readFindings(file string) (map[position]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := map[position]string{}
	for line := range strings.Lines(string(text)) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if f.Status == statusTimedOut || f.Status == statusNotViable && found[f.position] == "" {
			found[f.position] = f.Status
		}
	}
	return found, nil
}

// name gives every mutant its key.
func name(a area, ms []mutant) error {
	sources := map[string]*source{}
	for i := range ms {
		m := &ms[i]
		s := sources[m.File]
		if s == nil {
			var err error
			if s, err = readSource(filepath.Join(a.dir, m.File)); err != nil {
				return err
			}
			sources[m.File] = s
		}
		m.key = key{a.dir, s.function(m.Line), m.Type, s.marked(m.Line, m.Column)}
	}
	return nil
}

// source is a file of code.
type source struct {
	lines []string
	set   *token.FileSet
	file  *ast.File
}

func readSource(path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &source{lines: strings.Split(string(text), "\n"), set: token.NewFileSet()}
	s.file, err = parser.ParseFile(s.set, path, text, 0)
	return s, err
}

// function returns the name of the function that a line is in, with its
// receiver's type, and "-" outside of functions.
func (s *source) function(line int) string {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || line < s.set.Position(f.Pos()).Line || line > s.set.Position(f.End()).Line {
			continue
		}
		if f.Recv == nil {
			return f.Name.Name
		}
		t := f.Recv.List[0].Type
		if p, ok := t.(*ast.StarExpr); ok {
			t = p.X
		}
		if g, ok := t.(*ast.IndexExpr); ok {
			t = g.X
		}
		if id, ok := t.(*ast.Ident); ok {
			return id.Name + "." + f.Name.Name
		}
		return f.Name.Name
	}
	return "-"
}

// marked returns a line with the operator at a column in «».
func (s *source) marked(line, column int) string {
	text := s.lines[line-1]
	before, rest := text[:column-1], text[column-1:]
	var scan scanner.Scanner
	scan.Init(token.NewFileSet().AddFile("", -1, len(rest)), []byte(rest), nil, 0)
	_, tok, _ := scan.Scan()
	n := min(len(tok.String()), len(rest))
	return strings.TrimSpace(before + "«" + rest[:n] + "»" + rest[n:])
}
