package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// adopt makes the tables of a policy file, which is in force now, the Set's.
func (s *Set) adopt(c *candidate) {
	former := s.tables
	s.tables = map[tableID]*table{}
	for id, w := range c.tables {
		if w.read != nil {
			w.current.Store(w.read.table)
			w.tried = w.read.stamp
		} else if w.refused { // the new policies may have what it was refused for
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

// start reads a table again and again from now on, if it is to be.
func (s *Set) start(t *table) {
	parent := s.life
	if t.isFile() {
		if s.watching == nil {
			return
		}
		parent = s.watching
	}
	var ctx context.Context
	ctx, t.stop = context.WithCancel(parent)
	s.following.Go(func() { s.follow(ctx, t) })
}

// end ends the readings of a table.
func (t *table) end() {
	if t.stop != nil {
		t.stop()
	}
}

// endTables ends the readings of all tables. It waits for those that are under way, at most closeWithin.
func (s *Set) endTables(all map[tableID]*table) error {
	for _, t := range all {
		t.end()
	}
	s.die()
	ended := make(chan struct{})
	go func() {
		s.following.Wait()
		close(ended)
	}()
	timer := time.NewTimer(closeWithin)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("policy: %s: a source of quotas has not returned %v after its context had ended", s.file, closeWithin)
	}
}

func (s *Set) follow(ctx context.Context, t *table) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.sooner:
			continue
		case <-time.After(time.Duration(t.every.Load())):
			s.look(ctx, t)
		}
	}
}

// look reads a table and puts it in force, unless it is a file that has not changed.
func (s *Set) look(ctx context.Context, t *table) {
	if t.path != "" && !s.changed(ctx, t) {
		return
	}
	v, err := t.read(ctx)
	if ctx.Err() != nil {
		return
	}
	s.change.Lock()
	if s.closed || s.tables[t.id] != t {
		s.change.Unlock()
		return
	}
	recovered := t.failure != "" && err == nil
	if err == nil {
		t.tried, err = v.stamp, s.replaceTable(t, v)
		t.refused = err != nil
	}
	same := err != nil && err.Error() == t.failure
	if t.failure = ""; err != nil {
		t.failure = err.Error()
	}
	s.change.Unlock()
	switch {
	case same:
		return
	case err != nil:
		s.options.log.Error("table of quotas refused: the last good one stays in force", "table", t.name, "error", err)
	case t.path == "" && !recovered: // it is read whether it has changed or not
		s.options.log.Debug("table of quotas in force", "table", t.name, "keys", v.table.Len())
		return
	default:
		s.options.log.Info("table of quotas in force", "table", t.name, "keys", v.table.Len())
	}
	if s.options.reloaded != nil {
		s.options.reloaded(err)
	}
}

// replaceTable puts a version of a table in force if it is fine for all rules that have it.
func (s *Set) replaceTable(t *table, v version) error {
	m := &mistakes{file: s.file}
	f := s.current.Load()
	field := ""
	for _, p := range f.policies {
		for _, rule := range p.rules {
			if rule.table != t {
				continue
			}
			if field = rule.Quotas.At().Field; v.problems == nil {
				problems, _ := v.table.Check(rule.Sets())
				m.addRows(t.name, field, problems)
			}
		}
	}
	m.addRows(t.name, field, v.problems)
	if m.found() {
		return join(m.errs)
	}
	t.current.Store(v.table)
	s.warn(f.warnings(s.file))
	return nil
}

// changed reports whether a table's file is to be read: it is another one than what was tried
// last, and nobody is writing it, or somebody has for too long.
func (s *Set) changed(ctx context.Context, t *table) bool {
	s.change.Lock()
	tried := t.tried
	s.change.Unlock()
	if info, err := t.stat(); err == nil && tried.is(info) {
		return false
	}
	_, before, err := t.text()
	if err == nil && before.sum == tried.sum && tried.info != nil {
		s.change.Lock()
		t.tried = before
		t.failure = ""
		s.change.Unlock()
		return false
	}
	for begin := time.Now(); time.Since(begin) < unsettled; {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(settle):
		}
		_, now, failed := t.text()
		if now.sum == before.sum && errors.Is(failed, err) {
			break
		}
		before, err = now, failed
	}
	return true
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
