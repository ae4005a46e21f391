package policy

import (
	"slices"
)

// adopt makes the tables of a policy file, which is in force now, the Set's.
func (s *Set) adopt(c *candidate) {
	former := s.tables
	s.tables = map[tableID]*table{}
	for id, w := range c.tables {
		if w.read != nil {
			w.current.Store(w.read.table)
			w.tried = w.read.stamp
		} else if w.rejected { // the new policies may have what it was rejected for
			w.tried = stamp{}
		}
		if w.isFile() {
			w.table.every.Store(int64(pollEvery))
		} else if w.table.every.Swap(int64(w.every)) != int64(w.every) {
			select {
			case w.sooner <- struct{}{}:
			default:
			}
		}
		s.tables[id] = w.table
		if former[id] != w.table {
			s.start(w.table)
		}
	}
	for id, t := range former {
		if s.tables[id] != t {
			t.end()
		}
	}
}

// tableDoubts returns what is probably a mistake in the tables.
func (f *enforcedFile) tableDoubts(m *mistakes) {
	var seen []tableID
	for _, p := range f.policies {
		for _, rule := range p.rules {
			if rule.table == nil || slices.Contains(seen, rule.table.id) {
				continue
			}
			seen = append(seen, rule.table.id)
			_, doubts := rule.table.current.Load().Check(rule.Sets())
			m.addRows(rule.table.name, rule.Quotas.At().Field, doubts)
		}
	}
}
