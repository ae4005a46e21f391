package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A test that sleeps in real time is slow, and fails on a busy machine. In a bubble
// of testing/synctest, sleeping takes no time.
func TestTestsSleepInBubblesOnly(t *testing.T) {
	type sleeper struct {
		at   token.Position
		dir  string
		decl *ast.FuncDecl
	}
	var sleepers []sleeper
	bubbles := map[string][]string{} // by folder: functions that begin a bubble
	set := token.NewFileSet()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if calls(f.Body, "synctest", "Test") {
				bubbles[dir] = append(bubbles[dir], f.Name.Name)
			}
			if calls(f.Body, "time", "Sleep") {
				sleepers = append(sleepers, sleeper{set.Position(f.Pos()), dir, f})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sleepers {
		isTest := strings.HasPrefix(s.decl.Name.Name, "Test")
		// A helper sleeps in the bubbles of the tests that call it.
		inside := !isTest && len(bubbles[s.dir]) > 0 || slices.Contains(bubbles[s.dir], s.decl.Name.Name) ||
			slices.ContainsFunc(bubbles[s.dir], func(name string) bool { return calls(s.decl.Body, "", name) })
		if !inside {
			t.Errorf("%v: %s sleeps outside of synctest.Test", s.at, s.decl.Name.Name)
		}
	}
	if len(sleepers) < 50 {
		t.Errorf("only %d functions that sleep have been found: the test looks in the wrong place", len(sleepers))
	}
}

// calls reports whether a function of a package is mentioned; pkg is "" for the package itself.
func calls(body ast.Node, pkg, name string) (found bool) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			found = found || ok && x.Name == pkg && n.Sel.Name == name
		case *ast.Ident:
			found = found || pkg == "" && n.Name == name
		}
		return !found
	})
	return found
}
