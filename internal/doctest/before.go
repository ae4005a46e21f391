package doctest

import "strings"

// comes tells whether a page says how to change from another library.
func (p *Page) comes() bool {
	return strings.HasPrefix(p.File, "docs/coming-from/") && p.File != "docs/coming-from/README.md"
}

// CheckBefore returns the pages below docs/coming-from without a program of ours
// that prints what a program of the other library prints. Pages of notGo are
// about software that has no program in Go: they need a program of ours whose
// output the page has.
func CheckBefore(pages []*Page, notGo map[string]bool) (problems []Problem) {
	for _, p := range pages {
		before, after := map[string]bool{}, map[string]bool{}
		for _, b := range p.Blocks {
			if b.has("before") && !b.isProgram() {
				problems = append(problems, b.problem("the comment before is for programs"))
			}
			if !b.isProgram() {
				continue
			}
			out := b.output()
			switch {
			case out != nil && b.has("before"):
				before[out.wanted()] = true
			case out != nil:
				after[out.wanted()] = true
			case b.has("before"):
				problems = append(problems, b.problem("the page does not have what the program prints"))
			}
		}
		if !p.comes() {
			continue
		}
		switch {
		case notGo[p.File] && len(after) == 0:
			problems = append(problems, Problem{p.File, 1, "the page has no program of ours and what it prints"})
		case !notGo[p.File] && len(before) == 0:
			problems = append(problems, Problem{p.File, 1, "the page has no program of the other library, with the comment before"})
		case !notGo[p.File] && !common(before, after):
			problems = append(problems, Problem{p.File, 1, "no program of ours prints what a program of the other library prints"})
		}
	}
	return problems
}

// common tells whether two sets have an element in common.
func common(a, b map[string]bool) bool {
	for s := range a {
		if b[s] {
			return true
		}
	}
	return false
}
