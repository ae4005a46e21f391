package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxLines is the most lines of a file, which tells one story.
const maxLines = 600

// maxExports is the most types and functions that package core exports, without
// methods: what a newcomer has to look through. PerSecond to PerMonth are six of
// them, and read as one.
const maxExports = 47

func TestFilesAreShort(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || ext != ".go" && ext != ".lua":
			return nil
		}
		files++
		text, err := os.ReadFile(path) //nolint:gosec // a file of the project
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, at most %d are allowed: divide it by subject", strings.TrimPrefix(path, "../../"), n, maxLines)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("found %d files only", files)
	}
}

func TestCoreExportsFewNames(t *testing.T) {
	names := exports(t, "../../core")
	if len(names) > maxExports {
		t.Errorf("core exports %d types and functions, at most %d are allowed: %s", len(names), maxExports, strings.Join(names, ", "))
	}
	for _, known := range []string{"Limiter", "New", "ParseLimits", "Store"} {
		if !slices.Contains(names, known) {
			t.Errorf("%s is not found among core's exports: %s", known, strings.Join(names, ", "))
		}
	}
}

// exports returns the exported types and functions of the package in a folder.
func exports(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	add := func(name *ast.Ident) {
		if name.IsExported() {
			names = append(names, name.Name)
		}
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						add(s.Name)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return names
}
