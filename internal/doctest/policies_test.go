package doctest

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// CheckPolicies returns what policy.Parse says of the blocks that are policy files. A block that is
// one of a service's, with users and tiers, is one here too: the program's part is given.
func CheckPolicies(pages []*Page) (problems []Problem, n int) {
	for _, p := range pages {
		for _, b := range p.Blocks {
			if !b.has("policy") {
				continue
			}
			n++
			if b.Lang != "yaml" {
				problems = append(problems, b.problem("a policy file is a block of the language yaml, not %q", b.Lang))
				continue
			}
			problems = append(problems, checkPolicy(b)...)
		}
	}
	return problems, n
}

// folderOf writes the files of a page to a new folder: a policy file may name one.
func folderOf(p *Page) (string, error) {
	folder, err := os.MkdirTemp("", "doctest")
	for _, b := range p.Blocks {
		if name, found := b.Directives["file"]; found && err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(name)), []byte(b.Text), 0o600)
		}
	}
	return folder, err
}

func checkPolicy(b *Block) (problems []Problem) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	defer memory.Close() //nolint:errcheck // always nil
	folder, err := folderOf(b.Page)
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	if err != nil {
		return []Problem{b.problem("%v", err)}
	}
	set, err := policy.Parse(b.Page.File, []byte(b.Text),
		policy.Log(slog.New(slog.DiscardHandler)),
		policy.WithStore(memory),
		policy.WithUser(func(core.Request) string { return "" }),
		policy.WithTier(func(core.Request) (string, error) { return "", nil }))
	for _, e := range policy.Errors(err) {
		problems = append(problems, Problem{b.Page.File, b.Line + max(e.Line, 1) - 1, e.Error()})
	}
	if err != nil {
		if len(problems) == 0 {
			problems = append(problems, b.problem("%v", err))
		}
		return problems
	}
	warnings := set.Warnings()
	if b.Directives["policy"] == "warns" {
		if len(warnings) == 0 {
			problems = append(problems, b.problem("the comment announces a warning, and there is none"))
		}
		warnings = nil
	}
	for _, e := range warnings {
		problems = append(problems, Problem{b.Page.File, b.Line + max(e.Line, 1) - 1, "a warning: " + e.Error()})
	}
	if err := set.Close(); err != nil {
		problems = append(problems, b.problem("%v", err))
	}
	return problems
}
