package doctest

import (
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

//go:embed preludes/*.txt
var preludes embed.FS

// imports are what a fragment may use without saying so, as readers know it from
// the pages' programs.
var imports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "log": "log", "slog": "log/slog", "http": "net/http", "httputil": "net/http/httputil", "url": "net/url",
	"os": "os", "sync": "sync", "testing": "testing", "time": "time", "strings": "strings",
	"echo": "github.com/labstack/echo/v4", "fiber": "github.com/gofiber/fiber/v2", "gin": "github.com/gin-gonic/gin",
	"binding": "github.com/gin-gonic/gin/binding", "redis": "github.com/redis/go-redis/v9", "pgxpool": "github.com/jackc/pgx/v5/pgxpool",
	"core": module + "/core", "keyfuncs": module + "/keyfuncs", "login": module + "/login", "live": module + "/live", "inflight": module + "/inflight", "policy": module + "/policy",
	"floodgatetest": module + "/floodgatetest", "storetest": module + "/core/storetest",
	"httplimit": module + "/adapters/nethttp", "ginlimit": module + "/adapters/gin",
	"echolimit": module + "/adapters/echo", "fiberlimit": module + "/adapters/fiber",
	"redisstore": module + "/stores/redis", "memcachedstore": module + "/stores/memcached", "resilient": module + "/stores/resilient",
	"denycache": module + "/stores/denycache", "synced": module + "/stores/synced",
	"redisbackend": module + "/stores/synced/redisbackend", "pgbackend": module + "/stores/synced/pgbackend",
}

// piece is a part of a fragment that is compiled by itself.
type piece struct {
	text    string
	line    int
	prelude string
}

// pieces returns what of a fragment is compiled in which prelude: the whole, or
// one line of code in each if the comment names several.
func (b *Block) pieces() ([]piece, *Problem) {
	names := strings.FieldsFunc(b.Directives["go"], func(r rune) bool { return r == ',' || r == ' ' })
	if len(names) == 0 {
		p := b.problem("a Go block that is no program needs a comment <!-- go: PRELUDE --> above it; there are %s", strings.Join(preludeNames(), ", "))
		return nil, &p
	}
	if len(names) == 1 {
		return []piece{{b.Text, b.Line, names[0]}}, nil
	}
	var pieces []piece
	for i, line := range strings.Split(b.Text, "\n") {
		if code := strings.TrimSpace(line); code == "" || strings.HasPrefix(code, "//") {
			continue
		}
		if len(pieces) < len(names) {
			pieces = append(pieces, piece{line + "\n", b.Line + i, names[len(pieces)]})
		} else {
			pieces = append(pieces, piece{})
		}
	}
	if len(pieces) != len(names) {
		p := b.problem("the comment names %d preludes, the block has %d lines of code", len(names), len(pieces))
		return nil, &p
	}
	return pieces, nil
}

func preludeNames() []string {
	entries, _ := preludes.ReadDir("preludes") // embedded: it is there
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return names
}

// source returns the files of a package that has the piece: the prelude, and the
// piece as declarations or, if it is none, in a function.
func (p piece) source(pkg, file string) (prelude, fragment string, err error) {
	text, err := preludes.ReadFile("preludes/" + p.prelude + ".txt")
	if err != nil {
		return "", "", fmt.Errorf("there is no prelude %q; there are %s", p.prelude, strings.Join(preludeNames(), ", "))
	}
	place := fmt.Sprintf("//line %s:%d\n", file, p.line)
	body := place + p.text
	parsed, err := parser.ParseFile(token.NewFileSet(), "", "package "+pkg+"\n"+body, parser.SkipObjectResolution)
	if err != nil {
		body = "func _() {\n" + place + p.text + "\n"
		parsed, err = parser.ParseFile(token.NewFileSet(), "", "package "+pkg+"\n"+body+"}\n", parser.SkipObjectResolution)
		if err != nil {
			return "", "", err
		}
		for _, name := range declared(parsed) {
			body += "_ = " + name + "\n"
		}
		body += "}\n"
	}
	head := "package " + pkg + "\n"
	for _, name := range missing(parsed) {
		head += fmt.Sprintf("import %s %q\n", name, imports[name])
	}
	return "package " + pkg + "\n" + string(text), head + body, nil
}

// declared returns the variables that the function of a fragment declares and
// that the compiler would call unused.
func declared(f *ast.File) (names []string) {
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && id.Name != "_" && !slices.Contains(names, id.Name) {
			names = append(names, id.Name)
		}
	}
	for _, s := range f.Decls[len(f.Decls)-1].(*ast.FuncDecl).Body.List {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				for _, e := range s.Lhs {
					add(e)
				}
			}
		case *ast.DeclStmt:
			for _, spec := range s.Decl.(*ast.GenDecl).Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, id := range v.Names {
						add(id)
					}
				}
			}
		}
	}
	return names
}

// missing returns the names of packages that a fragment uses and does not import.
func missing(f *ast.File) (names []string) {
	has := map[string]bool{}
	for _, s := range f.Imports {
		path := strings.Trim(s.Path.Value, `"`)
		for name, known := range imports {
			if known == path {
				has[name] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := s.X.(*ast.Ident); ok && imports[id.Name] != "" && !has[id.Name] {
			has[id.Name] = true
			names = append(names, id.Name)
		}
		return true
	})
	slices.Sort(names)
	return names
}
