package doctest

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// CheckExamples returns the programs that differ from the example which their comment names, the
// examples that no test starts, and those to which examples/README.md has no link. compared is the
// number of programs that were compared. A program without that comment lives in its page only.
func CheckExamples(root string, pages []*Page) (problems []Problem, compared int, err error) {
	var files []string
	for _, p := range pages {
		for _, b := range p.Blocks {
			if !b.has("example") {
				continue
			}
			name := b.Directives["example"]
			if path.Ext(name) != ".go" {
				name = path.Join(name, "main.go")
			}
			file := path.Join("examples", name)
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				problems = append(problems, b.problem("the comment example: %v", err))
				continue
			}
			compared++
			files = append(files, name)
			if _, code, _ := strings.Cut("\n"+string(text), "\npackage "); "package "+code != b.Text {
				problems = append(problems, b.problem("the program is not the one of %s: copy one to the other", file))
			}
		}
	}
	list := path.Join("examples", "README.md")
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(list)))
	if errors.Is(err, fs.ErrNotExist) {
		return problems, compared, nil
	}
	if err != nil {
		return nil, 0, err
	}
	err = filepath.WalkDir(filepath.Join(root, "examples"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "main.go" {
			return err
		}
		name, err := filepath.Rel(filepath.Join(root, "examples"), file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		tests, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*_test.go"))
		if !slices.Contains(files, name) && len(tests) == 0 {
			problems = append(problems, Problem{path.Join("examples", name), 1, "no test starts it: no page has the program, and there is no test file beside it"})
		}
		files = append(files, name)
		return err
	})
	slices.Sort(files)
	for _, name := range slices.Compact(files) {
		if !strings.Contains(string(text), "]("+name+")") {
			problems = append(problems, Problem{list, 1, "there is no link to " + name})
		}
	}
	return problems, compared, err
}
