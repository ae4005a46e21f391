package core

import "context"

// split parts the hits of shadow rules from the others.
func (s *snapshot) split(hits []Hit) (enforced, shadows []Hit) {
	for _, h := range hits {
		if i, err := s.rule(h.Rule); err == nil && s.rules[i].Shadow {
			shadows = append(shadows, h)
		} else {
			enforced = append(enforced, h)
		}
	}
	return enforced, shadows
}

// takeShadows takes hits of shadow rules, beside the decision d on others.
func (l *Limiter) takeShadows(ctx context.Context, s *snapshot, cost int64, what purpose, hits []Hit, d *Decision) {
	c := l.session(s)
	var shadow Decision
	_ = c.takeHits(ctx, cost, what, hits, &shadow) // logged, and it denies nothing
	d.Rehearsal = d.Allowed && !shadow.Allowed
	d.shadow = &shadow
	l.release(c, nil)
}
