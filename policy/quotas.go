package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/regularfile"
	"github.com/floodgate-go/floodgate/policy/internal/quotas"
)

// QuotaSource is a table of the quotas of single keys, such as the customers of a
// database: see [WithQuotas]. Its method may be called concurrently.
type QuotaSource interface {
	// Quotas calls row once for each key of the table, with what the key may have: a number if
	// the rule has one limit, such as 500; or quotas and the windows of limits, such
	// as 1000/m, 20000/d; or unlimited. A limit whose window is left out keeps
	// the quota that the policy file says. If row returns an error, Quotas stops and returns it.
	// row must not be called after Quotas has returned, or concurrently.
	//
	// The whole table is read, at most ten million rows, and put in force at one
	// moment. After an error the former table stays in force. ctx ends after 30
	// seconds, and when the Set is closed.
	Quotas(ctx context.Context, row func(key, quotas string) error) error
}

// QuotaFile returns the table in a file, for a file that is not below the folder of
// the policy file. A line of the file has a key, a colon and quotas, as in
//
//	# customers
//	ann: 1000/m, 20000/d
//	bob: unlimited
//	"a key with # and \"quotes\"": 500/m
//
// The last colon of a line ends the key, so that an IPv6 address needs no quotes. A
// key begins at the beginning of its line. A comment begins with #, behind a space or
// at the beginning of a line. A file has at most 64 MiB. It is read only if it has changed.
func QuotaFile(path string) QuotaSource { return fileTable(path) }

type fileTable string

// Quotas implements [QuotaSource].
func (f fileTable) Quotas(_ context.Context, row func(key, quotas string) error) error {
	text, err := regularfile.Read(string(f), quotas.MaxBytes)
	if err != nil {
		return err
	}
	b := quotas.Read(text)
	if problems := b.Problems(); problems != nil {
		m := &mistakes{}
		m.addRows(string(f), "", problems)
		return join(m.errs)
	}
	for key, text := range b.All() {
		if err := row(key, text); err != nil {
			return err
		}
	}
	return nil
}

// addRows adds mistakes in a table. field is where the policy file names it.
func (m *mistakes) addRows(table, field string, problems []quotas.Problem) {
	for _, p := range problems {
		m.errs = append(m.errs, &Error{File: table, Line: p.Line, Column: p.Column, Field: field, Problem: p.Text, Hint: p.Hint})
	}
}

// errEnough ends the reading of a source of which nothing more is wanted.
var errEnough = errors.New("policy: the table of quotas has too many rows or mistakes")

// readSource reads the table of a source. Line numbers of a source that is no file are
// numbers of rows.
func readSource(ctx context.Context, source QuotaSource) (*quotas.Table, []quotas.Problem, error) {
	var b quotas.Builder
	rows := 0
	err := source.Quotas(ctx, func(key, text string) error {
		if rows++; !b.Add(key, text, rows, 0) {
			return errEnough
		}
		return ctx.Err()
	})
	t, problems := b.Table()
	if err != nil && !(errors.Is(err, errEnough) && problems != nil) {
		return nil, nil, err
	}
	return t, problems, nil
}

// QuotasOf returns what core.Hit.Quotas of a key is, for a Take without a request: the
// quotas that the tables of the file have for the key. It is nil if they have
// none, and the limits' own quotas hold. What the field quota says of requests is not in it. rule is
// the name of a rule as in [Set.Policies]; the error wraps core.ErrUnknownRule if there is none.
func (s *Set) QuotasOf(rule, key string) ([]int64, error) {
	f := s.current.Load()
	if p := f.byRule[rule]; p != nil {
		for i := range p.rules {
			for _, r := range p.rules[i].coreRules() {
				if r.Name == rule {
					return p.rules[i].quotasOf(key, r.Limits), nil
				}
			}
		}
		return nil, nil // the list deny
	}
	return nil, fmt.Errorf("policy: %s: %q: %w", s.file, rule, core.ErrUnknownRule)
}

// quotasOf returns the quotas of a key of a rule with these limits, nil for their own.
func (rule enforcedRule) quotasOf(key string, limits []core.Limit) []int64 {
	row := rule.table.find([]byte(key))
	if row == nil {
		return nil
	}
	all := make([]int64, len(limits))
	for i := range limits {
		q, found := row.Quota(&limits[i])
		if !found {
			q = limits[i].Quota
		}
		all[i] = q
	}
	return all
}
