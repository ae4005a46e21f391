package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// quotedTexts finds the texts that a page says a log, an error or a response has.
var quotedTexts = regexp.MustCompile("(?:log|`Prefork`|error|response) has ((?:`[^`]+`(?: or )?)+)")

// CheckTexts returns the texts of logs, errors and responses on the pages that no
// Go file of the tree has, besides tests. found is the number of texts.
func CheckTexts(root string, pages []*Page) (problems []Problem, found int, err error) {
	var code strings.Builder
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	all := code.String()
	for _, p := range pages {
		table := false // whose first column has such texts
		for i, line := range p.Lines {
			table = line == "| the log has | meaning |" || table && strings.HasPrefix(line, "|")
			if cells := strings.SplitN(line, "|", 3); table && strings.Contains(line, "`") {
				line = "log has " + strings.TrimSpace(cells[1])
			}
			for _, m := range quotedTexts.FindAllStringSubmatch(line, -1) {
				for _, span := range codeSpan.FindAllString(m[1], -1) {
					found++
					if text := strings.Trim(span, "`"); !strings.Contains(all, text) {
						problems = append(problems, Problem{p.File, i + 1, "no Go file has the text " + text})
					}
				}
			}
		}
	}
	return problems, found, nil
}
