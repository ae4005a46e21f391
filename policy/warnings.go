package policy

// Warnings returns parts of the file in force that are legal and probably
// mistakes: tiers, costs and keys that a client can choose, keys that a request
// may lack if the file does not set the field missing, keys by a route that may
// be unknown, quotas of 0, in a table too, and lists of addresses that contradict each other. Each
// warning is also logged once.
func (s *Set) Warnings() []*Error { return s.current.Load().warnings(s.file) }

// warn logs the warnings of a file that have not been logged before.
func (s *Set) warn(doubts []*Error) {
	for _, e := range doubts {
		text := e.Error()
		if !s.warned[text] {
			s.warned[text] = true
			s.options.log.Warn("policy file: probably a mistake", "file", e.File, "line", e.Line, "field", e.Field, "problem", e.Problem, "hint", e.Hint)
		}
	}
}

// warnings returns the warnings of a file with this name.
func (f *enforcedFile) warnings(name string) []*Error {
	m := &mistakes{file: name}
	for _, d := range f.Doubts {
		m.add(d.Place, d.Text, d.Hint)
	}
	f.tableDoubts(m)
	return m.errs
}
