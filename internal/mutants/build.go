//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
}

func list(ctx context.Context, goTool string, args ...string) (ps []goPackage, err error) {
	out, err := exec.CommandContext(ctx, goTool, append([]string{"list", "-json=ImportPath,Dir,Name,Export,GoFiles"}, args...)...).Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return ps, nil
		} else if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
}

// writeSchemas writes the schemas of the area's packages into a directory, and
// returns an overlay for the go command and the numbers of the breaks.
func writeSchemas(ctx context.Context, a area, goTool, dir string) (overlay string, ids map[string]int, err error) {
	all, err := list(ctx, goTool, "-export", "-deps", "./"+a.dir+"/...")
	if err != nil {
		return "", nil, err
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	own, err := list(ctx, goTool, "./"+a.dir+"/...")
	if err != nil {
		return "", nil, err
	}
	root, err := filepath.Abs(a.dir)
	if err != nil {
		return "", nil, err
	}
	set, last := token.NewFileSet(), 0
	ids = map[string]int{}
	replace := map[string]string{}
	put := func(path string, text []byte) error {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[path] = to
		return os.WriteFile(to, text, 0o600)
	}
	for _, p := range own {
		var files []*ast.File
		var sources [][]byte
		for _, name := range p.GoFiles {
			src, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return "", nil, err
			}
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), src, parser.SkipObjectResolution)
			if err != nil {
				return "", nil, err
			}
			files, sources = append(files, file), append(sources, src)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		check := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
		if _, err := check.Check(p.ImportPath, set, files, info); err != nil {
			return "", nil, err
		}
		changed := false
		for i, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			below, err := filepath.Rel(root, path)
			if err != nil {
				return "", nil, err
			}
			if a.excludes(filepath.ToSlash(below)) {
				continue
			}
			r := rewriter{info: info, set: set, name: filepath.ToSlash(below), ids: ids, last: &last}
			if err := put(path, r.rewrite(files[i], sources[i])); err != nil {
				return "", nil, err
			}
			changed = true
		}
		if changed {
			if err := put(filepath.Join(p.Dir, "mutant_schema.go"), schemaFile(p.Name)); err != nil {
				return "", nil, err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, ids, os.WriteFile(overlay, text, 0o600)
}

// binary is a compiled test.
type binary struct {
	Path, Dir string
	Skip      string // regular expression of tests that are left out
	Parts     []part // in this order
}

// part is some of the tests of a binary.
type part struct {
	Flag  string // that chooses the tests
	Limit duration
}

// compile compiles the tests of a stage with the schemas, runs them without a
// break, and adds them to the stage.
func (s *stage) compile(ctx context.Context, goTool, overlay, dir string) error {
	skip := "^$"
	s.Limit = longestRun
	for _, arg := range s.Arguments {
		if tests, ok := strings.CutPrefix(arg, "-skip="); ok {
			skip = tests
			continue
		}
		ps, err := list(ctx, goTool, arg)
		if err != nil {
			return err
		}
		b := binary{Path: filepath.Join(dir, fmt.Sprintf("%s.test", strings.ReplaceAll(arg, "/", "-"))), Dir: ps[0].Dir, Skip: skip}
		if out, err := exec.CommandContext(ctx, goTool, "test", "-c", "-vet=off", "-ldflags=-s", "-overlay", overlay, "-o", b.Path, arg).CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		if _, err := os.Stat(b.Path); err != nil { // the package has no tests
			continue
		}
		status, out := s.run(b.Dir, nil, b.Path, "-test.count=1", "-test.paniconexit0", "-test.v", "-test.skip="+b.Skip)
		if status != statusLived {
			return fmt.Errorf("the compiled tests of %s fail before anything is broken: %s", arg, out)
		}
		b.Parts = partsOf(skip, out)
		s.Binaries = append(s.Binaries, b)
	}
	s.Limit = 0
	for _, b := range s.Binaries {
		for _, p := range b.Parts {
			s.Limit += p.Limit
		}
	}
	return nil
}

// longestRun is how long the tests of a package may take before anything is broken.
const longestRun = 20 * time.Minute

var testTime = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([0-9.]+)s\)$`)

// partsOf divides the tests of a run by the time that each took in it. Fast tests
// notice most breaks, so that those that take most of the time are run last, for
// the breaks that no other test has noticed.
func partsOf(skip, out string) []part {
	type test struct {
		name string
		took float64
	}
	var tests []test
	total := 0.0
	for _, m := range testTime.FindAllStringSubmatch(out, -1) {
		took, _ := strconv.ParseFloat(m[2], 64)
		tests = append(tests, test{m[1], took})
		total += took
	}
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	flag := func(name string, tests []test) string {
		names := make([]string, len(tests))
		for i, t := range tests {
			names[i] = t.name
		}
		return name + "^(" + strings.Join(names, "|") + ")$"
	}
	limit := func(took float64) duration { return 30*time.Second + 8*time.Duration(took*float64(time.Second)) }
	var parts []part
	begin, sum, before := 0, 0.0, 0.0
	for i, t := range tests {
		if share := partShares[len(parts)]; sum+t.took > share*total && total > fastRun {
			if len(parts) == 0 { // also tests that the run did not name
				parts = append(parts, part{flag("-test.skip="+skip+"|", tests[i:]), limit(sum)})
			} else {
				parts = append(parts, part{flag("-test.run=", tests[begin:i]), limit(sum - before)})
			}
			begin, before = i, sum
		}
		sum += t.took
	}
	if len(parts) == 0 {
		return []part{{"-test.skip=" + skip, limit(total)}}
	}
	return append(parts, part{flag("-test.run=", tests[begin:]), limit(total - before)})
}

// partShares are the shares of the time that the first parts take together with
// those before them. A run of fastRun seconds is not divided.
var partShares = []float64{0.05, 0.3, 1.1}

const fastRun = 2
