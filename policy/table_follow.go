package policy

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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
		t.rejected = err != nil
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
		s.options.log.Error("table of quotas rejected: the last good one stays in force", "table", t.name, "error", err)
	case t.path == "" && !recovered: // it is read whether it has changed or not
		s.options.log.Debug("table of quotas in force", "table", t.name, "keys", v.table.Len())
		return
	case v.table.Len() == 0: // probably a file that was cut off
		s.options.log.Warn("table of quotas in force, without a key: all keys have the quotas of the policy file", "table", t.name)
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
		s.noteUnchanged(t, tried)
		return false
	}
	_, before, err := t.text()
	if err == nil && before.sum == tried.sum && tried.info != nil {
		s.noteUnchanged(t, before)
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

// noteUnchanged notes that a table's file can be read and has not changed. If the file is
// lost after that, this is reported, although it may have been lost and reported before.
func (s *Set) noteUnchanged(t *table, tried stamp) {
	s.change.Lock()
	defer s.change.Unlock()
	t.tried, t.failure = tried, ""
}
