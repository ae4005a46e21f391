package doctest

// CheckBefore returns the blocks with the comment before that are no programs, or
// whose output the page does not have.
func CheckBefore(pages []*Page) (problems []Problem) {
	for _, p := range pages {
		for _, b := range p.Blocks {
			switch {
			case !b.has("before"):
			case !b.isProgram():
				problems = append(problems, b.problem("the comment before is for programs"))
			case b.output() == nil:
				problems = append(problems, b.problem("the page does not have what the program prints"))
			}
		}
	}
	return problems
}
