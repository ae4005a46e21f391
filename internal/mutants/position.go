//go:build unix

package main

import (
	"bytes"
	"errors"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// position is where an operator is. File is a path below the area's directory.
type position struct {
	File         string
	Line, Column int
}

var errNoBreak = errors.New("no file differs from the module's own")

// findBreak returns the position of the operator that differs between two
// copies of the area.
func findBreak(original, changed string) (broken, error) {
	var at broken
	err := filepath.WalkDir(original, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isCode(path) {
			return err
		}
		name, err := filepath.Rel(original, path)
		if err != nil {
			return err
		}
		a, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(changed, name))
		if err != nil || bytes.Equal(a, b) {
			return err
		}
		at.File = filepath.ToSlash(name)
		at.Line, at.Column, at.Operator = firstDifference(a, b)
		return filepath.SkipAll
	})
	if err == nil && at.File == "" {
		err = errNoBreak
	}
	return at, err
}

func isCode(path string) bool {
	return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
}

// firstDifference returns where the tokens of two sources begin to differ, and
// the first one of b that does. Their layout may differ too, because gremlins does not print as gofmt does.
func firstDifference(a, b []byte) (line, column int, token string) {
	x, y := newTokens(a), newTokens(b)
	for {
		pos, tok := x.next()
		if _, other := y.next(); other != tok || tok == endOfFile {
			at := x.file.Position(pos)
			return at.Line, at.Column, strings.TrimSpace(other)
		}
	}
}

type tokens struct {
	file *token.File
	scan scanner.Scanner
}

func newTokens(src []byte) *tokens {
	t := new(tokens)
	t.file = token.NewFileSet().AddFile("", -1, len(src))
	t.scan.Init(t.file, src, nil, 0)
	return t
}

// next returns the next token that is not a semicolon.
func (t *tokens) next() (token.Pos, string) {
	for {
		pos, tok, text := t.scan.Scan()
		if tok != token.SEMICOLON {
			return pos, tok.String() + " " + strings.TrimSpace(text)
		}
	}
}

var endOfFile = token.EOF.String() + " "
