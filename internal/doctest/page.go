package doctest

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Problem is one thing that is wrong with a document.
type Problem struct {
	File string // relative to the root
	Line int
	Text string
}

// String returns the problem on one line, unless what was printed has several.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

// Page is a document.
type Page struct {
	File   string // relative to the root, with slashes
	Lines  []string
	Blocks []*Block
}

// Block is a fenced block of a page.
type Block struct {
	Page       *Page
	Line       int    // of the first line of its text, from 1
	Lang       string // what follows the fence, such as go
	Text       string // every line ends with a newline
	Directives map[string]string
	Next       *Block // the next one of the page, nil at the end
}

// directives are the comments that blocks may have.
var directives = map[string]bool{
	"go": true, "policy": true, "file": true, "needs": true, "server": true, "serves": true, "varies": true, "before": true, "example": true, "not output": true, "not run": true,
}

var (
	fence   = regexp.MustCompile("^( *)(```+|~~~+) *([A-Za-z0-9]*) *$")
	comment = regexp.MustCompile(`^<!-- *([a-z ]*[a-z]) *(?:: *(.*?))? *-->$`)
)

// ReadPages reads documents: the files of names, and all .md files below those of them that are
// folders.
func ReadPages(root string, names ...string) (pages []*Page, problems []Problem, err error) {
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			page, found := parsePage(filepath.ToSlash(file), string(text))
			pages, problems = append(pages, page), append(problems, found...)
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return pages, problems, nil
}

func parsePage(file, text string) (*Page, []Problem) {
	p := &Page{File: file, Lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	var problems []Problem
	above := map[string]string{}
	unknown := map[int]string{}
	for i := 0; i < len(p.Lines); i++ {
		line := strings.TrimSpace(p.Lines[i])
		if m := comment.FindStringSubmatch(line); m != nil {
			if directives[m[1]] {
				above[m[1]] = m[2]
			} else {
				unknown[i+1] = m[1]
			}
			continue
		}
		m := fence.FindStringSubmatch(p.Lines[i])
		if m == nil {
			if line != "" {
				clear(above)
				clear(unknown)
			}
			continue
		}
		b := &Block{Page: p, Line: i + 2, Lang: m[3], Directives: above}
		above = map[string]string{}
		for at, name := range unknown {
			problems = append(problems, Problem{file, at, fmt.Sprintf("unknown comment %q above a block; package doctest lists those that it knows", name)})
		}
		clear(unknown)
		var body strings.Builder
		for i++; ; i++ {
			if i >= len(p.Lines) {
				problems = append(problems, Problem{file, b.Line - 1, "the block has no end"})
				break
			}
			if strings.TrimSpace(p.Lines[i]) == m[2] {
				break
			}
			body.WriteString(strings.TrimPrefix(p.Lines[i], m[1]) + "\n")
		}
		b.Text = body.String()
		if n := len(p.Blocks); n > 0 {
			p.Blocks[n-1].Next = b
		}
		p.Blocks = append(p.Blocks, b)
	}
	return p, problems
}

// has tells whether a comment above the block says so.
func (b *Block) has(directive string) bool { _, ok := b.Directives[directive]; return ok }

func (b *Block) problem(format string, args ...any) Problem {
	return Problem{b.Page.File, b.Line, fmt.Sprintf(format, args...)}
}

// isProgram tells whether the block is a whole program, isTest whether it is a file of tests.
func (b *Block) isProgram() bool {
	return b.Lang == "go" && strings.HasPrefix(b.Text, "package main\n")
}

func (b *Block) isTest() bool {
	return b.Lang == "go" && strings.HasPrefix(b.Text, "package ") && !b.isProgram()
}

func (b *Block) isFragment() bool { return b.Lang == "go" && !strings.HasPrefix(b.Text, "package ") }

// output returns the block that has what the program prints, or the commands that ask a program
// that serves; nil if there is none.
func (b *Block) output() *Block {
	next := b.Next
	if next == nil || next.has("not output") || next.Lang != "text" && next.Lang != "console" {
		return nil
	}
	if b.has("serves") {
		if next.Lang != "console" {
			return nil
		}
		return next
	}
	for _, c := range next.commands() {
		if c.line != "go run ." && c.line != "go run main.go" {
			return nil
		}
	}
	return next
}

// CheckFormat returns the Go blocks that gofmt would change.
func CheckFormat(pages []*Page) (problems []Problem) {
	for _, p := range pages {
		for _, b := range p.Blocks {
			if b.Lang != "go" {
				continue
			}
			formatted, err := format.Source([]byte(b.Text))
			if err == nil && !bytes.Equal(bytes.TrimSpace(formatted), bytes.TrimSpace([]byte(b.Text))) {
				problems = append(problems, b.problem("gofmt would write\n%s", formatted))
			}
		}
	}
	return problems
}

// CheckBefore returns the blocks with the comment before that are no programs, or whose output the
// page does not have.
func CheckBefore(pages []*Page) (problems []Problem) {
	for _, p := range pages {
		for _, b := range p.Blocks {
			switch {
			case !b.has("before"):
			case !b.isProgram():
				problems = append(problems, b.problem("the comment before is for programs"))
			case b.output() == nil:
				problems = append(problems, b.problem("the page does not have what the program prints"))
			}
		}
	}
	return problems
}
