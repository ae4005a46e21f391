package doctest

import (
	"bytes"
	"go/format"
)

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
