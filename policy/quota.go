package policy

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/file"
	"github.com/floodgate-go/floodgate/policy/internal/quotas"
	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// ownQuotas is what a request's own quotas for a rule are made of. The limiter asks for
// the quota of each limit right after the key: the table is looked into once, so
// that all limits have the quotas of one version of it.
type ownQuotas struct {
	rule *file.Rule  // nil: not known yet
	row  *quotas.Row // of the table; nil: it does not have the key

	asked bool       // whether the expression has been evaluated
	given bool       // whether it has a value
	said  quotas.Row // that value
}

// varies reports whether requests may have quotas of their own.
func (rule enforcedRule) varies() bool { return rule.Quota != nil || rule.table != nil }

// counter is the rule's [core.KeyFunc].
func (rule enforcedRule) counter(dst []byte, r core.Request) ([]byte, error) {
	from := len(dst)
	dst, err := rule.identify(dst, r)
	if err == nil && rule.varies() {
		if m := remembered(r); m != nil {
			m.own = ownQuotas{rule: rule.Rule, row: rule.table.find(dst[from:])}
		}
	}
	return dst, err
}

// quota returns the rule's core.Rule.Quota.
func (rule *enforcedRule) quota() func(core.Request, core.Limit) (int64, error) {
	return func(r core.Request, l core.Limit) (int64, error) {
		own, err := rule.ownOf(r)
		if err != nil {
			return 0, err
		}
		q, _, err := rule.quotaOf(own, r, &l)
		return q, err
	}
}

// ownOf returns what counter has remembered of the request.
func (rule *enforcedRule) ownOf(r core.Request) (*ownQuotas, error) {
	if m := remembered(r); m != nil && m.own.rule == rule.Rule {
		return &m.own, nil
	}
	var room [64]byte // somebody asks the limiter, not the Set
	key, err := rule.identify(room[:0], r)
	if err != nil {
		return nil, err
	}
	return &ownQuotas{rule: rule.Rule, row: rule.table.find(key)}, nil
}

// origin is where a quota comes from.
type origin uint8

const (
	fromLimits origin = iota
	fromTable
	fromExpression
)

// quotaOf returns the quota of a request for a limit: the table's, else that of the
// expression, else the limit's own.
func (rule *enforcedRule) quotaOf(own *ownQuotas, r core.Request, l *core.Limit) (int64, origin, error) {
	if own.row != nil {
		if q, found := own.row.Quota(l); found {
			return q, fromTable, nil
		}
	}
	if rule.Quota == nil {
		return l.Quota, fromLimits, nil
	}
	if !own.asked {
		said, given, err := rule.Quota.Quota(r)
		if err == nil && given {
			if problem, _ := said.Check(rule.Sets()); problem != "" {
				err = fmt.Errorf("%w: the quota of the expression %q: %s", core.ErrBadRequest, words.Shorten(rule.Quota.String()), problem)
			}
		}
		if err != nil {
			return 0, fromExpression, err
		}
		own.said, own.given, own.asked = said, given, true
	}
	if own.given {
		if q, found := own.said.Quota(l); found {
			return q, fromExpression, nil
		}
	}
	return l.Quota, fromLimits, nil
}
