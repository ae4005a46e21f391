package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shownIn has the exported functions without an Example of their own, and the
// Example that calls them.
var shownIn = map[string]string{
	"core.PerHour":   "PerMinute",
	"core.PerSecond": "PerMinute",

	"floodgatetest.Body":          "NewRequest_options",
	"floodgatetest.Context":       "NewRequest_options",
	"floodgatetest.Cookie":        "NewRequest_options",
	"floodgatetest.Form":          "NewRequest",
	"floodgatetest.From":          "NewRequest_options",
	"floodgatetest.Header":        "WantDenied",
	"floodgatetest.JSON":          "NewRequest_options",
	"floodgatetest.NewLimiter":    "WantDenied",
	"floodgatetest.PathValue":     "NewRequest_options",
	"floodgatetest.Route":         "NewRequest_options",
	"floodgatetest.Value":         "NewRequest_options",
	"floodgatetest.WantAllowed":   "WantDenied",
	"floodgatetest.WantRemaining": "WantDenied",

	"login.SuspicionOf": "Guard_DeviceCookie",

	"memcachedstore.Clock":              "New_options",
	"memcachedstore.Log":                "New_options",
	"memcachedstore.Timeout":            "New",
	"memcachedstore.WithoutDenialCache": "New_options",

	"policy.Log":      "WithQuota",
	"policy.OnReload": "Watch",
	"policy.Parse":    "", // the package's own
	"policy.WithUser": "WithTier",

	"redisstore.AnotherInstance":    "New_options",
	"redisstore.Clock":              "New_options",
	"redisstore.Log":                "New_options",
	"redisstore.ShardedByKey":       "New_options",
	"redisstore.Timeout":            "New_options",
	"redisstore.WithoutDenialCache": "New_options",
}

// functions returns the exported functions of a package, and its Examples: by
// their names without the word Example, what their files use of the package.
func functions(t *testing.T, dir, pkg string) (exported []string, examples map[string]map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	examples = map[string]map[string]bool{}
	set := token.NewFileSet()
	for _, file := range files {
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil {
				continue
			}
			name := f.Name.Name
			if !strings.HasSuffix(file, "_test.go") {
				if f.Name.IsExported() {
					exported = append(exported, name)
				}
			} else if of, is := strings.CutPrefix(name, "Example"); is {
				examples[of] = uses(parsed, pkg)
			}
		}
	}
	slices.Sort(exported)
	return exported, examples
}

// uses returns the names of a package that a file uses. An Example may call a
// function by a helper beside it.
func uses(file *ast.File, pkg string) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && id.Name == pkg {
				names[s.Sel.Name] = true
			}
		}
		return true
	})
	return names
}

// A user looks for an Example of every function. Its file must use the function.
func TestEveryFunctionHasAnExample(t *testing.T) {
	root := root(t)
	known := map[string]bool{}
	for name, dir := range packages {
		exported, examples := functions(t, filepath.Join(root, filepath.FromSlash(dir)), name)
		for _, f := range exported {
			full := name + "." + f
			known[full] = true
			example, elsewhere := shownIn[full]
			if _, own := examples[f]; own && elsewhere {
				t.Errorf("%s has an Example of its own: take it off the list", full)
			} else if !elsewhere {
				example = f
			}
			if used, found := examples[example]; !found {
				t.Errorf("%s has no Example%s", full, example)
			} else if !used[f] {
				t.Errorf("the file of Example%s in package %s does not use %s", example, name, f)
			}
		}
	}
	for full := range shownIn {
		if !known[full] {
			t.Errorf("%s is on the list, and there is no such function", full)
		}
	}
	if len(known) < 80 {
		t.Errorf("only %d functions: the test sees nothing", len(known))
	}
}
