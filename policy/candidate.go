package policy

import (
	"maps"
	"time"

	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// candidate is a policy file that is not yet in force, and the tables that it names. It has been read
// without the Set's lock: a source may take long.
type candidate struct {
	spec     *file.Spec
	mistakes *mistakes
	tables   map[tableID]*wanted
}

// wanted is a table that a policy file names.
type wanted struct {
	*table
	at    file.Place
	every time.Duration
	read  *version // nil: the table stays as it is
}

// prepare reads a policy file's text, and those of its tables that the Set does not
// have; if anew is true, all of them.
func (s *Set) prepare(text []byte, anew bool) *candidate {
	c := &candidate{mistakes: &mistakes{file: s.file}, tables: map[tableID]*wanted{}}
	spec, problems := file.Read(text, file.Options{User: s.options.user, Tier: s.options.tier != nil})
	for _, p := range problems {
		c.mistakes.add(p.Place, p.Text, p.Hint)
	}
	if c.spec = spec; c.mistakes.found() {
		return c
	}
	s.change.Lock()
	known := maps.Clone(s.tables)
	s.change.Unlock()
	for q := range spec.Quotas() {
		if w := c.tables[idOf(q)]; w != nil {
			w.every = min(w.every, q.Every)
			continue
		}
		w := &wanted{table: known[idOf(q)], at: q.At(), every: q.Every}
		if anew || w.table == nil {
			s.readWanted(c.mistakes, w, q)
		}
		c.tables[idOf(q)] = w
	}
	return c
}

// readWanted reads a table.
func (s *Set) readWanted(m *mistakes, w *wanted, q *file.Quotas) {
	isNew := w.table == nil
	if isNew {
		var problem, hint string
		if w.table, problem, hint = newTable(q, s.options, s.folder); problem != "" {
			m.add(w.at, problem, hint)
			return
		}
	}
	v, err := w.table.read(s.life)
	if err != nil {
		m.addError(w, err)
		return
	}
	if v.problems != nil {
		m.addRows(w.name, w.at.Field, v.problems)
		return
	}
	if w.read = &v; isNew {
		w.tried = v.stamp
		w.current.Store(v.table)
	}
}

// addError adds the error of reading a table.
func (m *mistakes) addError(w *wanted, err error) {
	if found := Errors(err); found != nil { // of a QuotaFile
		m.errs = append(m.errs, found...)
		return
	}
	text := err.Error()
	if w.path == "" {
		text = w.name + ": " + text
	}
	m.add(w.at, text, "")
}

// checkTables adds what is wrong with the tables for the rules of a policy file.
func (c *candidate) checkTables() {
	for _, p := range c.spec.Policies {
		for i := range p.Rules {
			rule := &p.Rules[i]
			if rule.Quotas == nil {
				continue
			}
			w := c.tables[idOf(rule.Quotas)]
			content := w.current.Load()
			if w.read != nil {
				content = w.read.table
			}
			problems, _ := content.Check(rule.Sets())
			c.mistakes.addRows(w.name, rule.Quotas.At().Field, problems)
		}
	}
}
