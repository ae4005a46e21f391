package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// packages are the folders of the packages whose names stand in documents.
var packages = map[string]string{
	"core": "core", "keyfuncs": "keyfuncs", "policy": "policy", "login": "login", "live": "live", "floodgatetest": "floodgatetest",
	"httplimit": "adapters/nethttp", "ginlimit": "adapters/gin", "echolimit": "adapters/echo", "fiberlimit": "adapters/fiber",
	"echo5limit": "adapters/echo5", "fiber3limit": "adapters/fiber3",
	"grpclimit": "adapters/grpc", "connectlimit": "adapters/connect",
	"redisstore": "stores/redis", "memcachedstore": "stores/memcached", "resilient": "stores/resilient", "synced": "stores/synced",
	"redisbackend": "stores/synced/redisbackend", "pgbackend": "stores/synced/pgbackend", "denycache": "stores/denycache", "swapstore": "stores/swapstore",
}

// qualified is a name behind its package, and not a part of a path.
var qualified = regexp.MustCompile(`(?:^|[^\w./"-])([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// CheckNames returns the names in code spans, such as core.Config.Store, that their package does
// not export. Names in fenced blocks are the compiler's.
func CheckNames(root string, pages []*Page) (problems []Problem, checked int, err error) {
	exported := map[string]map[string]bool{}
	for name, dir := range packages {
		if exported[name], err = exports(filepath.Join(root, dir)); err != nil {
			return nil, 0, err
		}
	}
	for _, p := range pages {
		fenced := map[int]bool{}
		for _, b := range p.Blocks {
			for i := range strings.Count(b.Text, "\n") {
				fenced[b.Line+i] = true
			}
		}
		for i, line := range p.Lines {
			if fenced[i+1] {
				continue
			}
			for _, span := range codeSpan.FindAllString(line, -1) {
				for _, m := range qualified.FindAllStringSubmatch(strings.Trim(span, "`"), -1) {
					names, ours := exported[m[1]]
					if !ours {
						continue
					}
					checked++
					name := strings.TrimSuffix(m[2]+"."+m[3], ".")
					if !names[name] {
						problems = append(problems, Problem{p.File, i + 1, m[1] + "." + name + ": package " + packages[m[1]] + " exports no such name"})
					}
				}
			}
		}
	}
	return problems, checked, nil
}

// exports returns the exported names of a package; methods and fields follow their type and a dot.
func exports(dir string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	names, embeds := map[string]bool{}, map[string][]string{}
	set := token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			addNames(names, embeds, d)
		}
	}
	for outer, inner := range embeds {
		promote(names, outer, inner)
	}
	return names, nil
}

func addNames(names map[string]bool, embeds map[string][]string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
			return
		}
		receiver := d.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if id, ok := receiver.(*ast.Ident); ok {
			names[id.Name+"."+d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names[id.Name] = true
				}
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				addFields(names, embeds, s)
			}
		}
	}
}

// addFields adds a struct's fields and an interface's methods. Types of the package that are
// embedded are added to embeds.
func addFields(names map[string]bool, embeds map[string][]string, t *ast.TypeSpec) {
	var fields *ast.FieldList
	switch body := t.Type.(type) {
	case *ast.StructType:
		fields = body.Fields
	case *ast.InterfaceType:
		fields = body.Methods
	default:
		return
	}
	for _, f := range fields.List {
		if id, ok := f.Type.(*ast.Ident); ok && f.Names == nil {
			embeds[t.Name.Name] = append(embeds[t.Name.Name], id.Name)
		}
		for _, id := range f.Names {
			names[t.Name.Name+"."+id.Name] = true
		}
	}
}

// promote adds what a type has by embedding others.
func promote(names map[string]bool, outer string, inner []string) {
	for _, embedded := range inner {
		for name := range names {
			if member, ok := strings.CutPrefix(name, embedded+"."); ok {
				names[outer+"."+member] = true
			}
		}
	}
}
