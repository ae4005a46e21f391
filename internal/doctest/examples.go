package doctest

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// CheckExamples returns the programs that differ from the example which their
// comment names, and the folders below examples to which examples/README.md has
// no link. compared is the number of programs that were compared.
func CheckExamples(root string, pages []*Page) (problems []Problem, compared int, err error) {
	for _, p := range pages {
		for _, b := range p.Blocks {
			if !b.has("example") {
				continue
			}
			file := path.Join("examples", b.Directives["example"], "main.go")
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				problems = append(problems, b.problem("the comment example: %v", err))
				continue
			}
			compared++
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
		if name = filepath.ToSlash(name); err == nil && !strings.Contains(string(text), "]("+name+")") {
			problems = append(problems, Problem{list, 1, "there is no link to " + name})
		}
		return err
	})
	return problems, compared, err
}
