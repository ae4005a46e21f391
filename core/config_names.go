package core

import (
	"slices"
	"strconv"
)

// nameLimits returns the rule's limits with their names and the defaults of their
// lockouts filled in.
func nameLimits(r Rule) []Limit {
	limits := slices.Clone(r.Limits)
	for i := range limits {
		l := &limits[i]
		if !l.Lockout.none() {
			l.Lockout = l.Lockout.filled()
		}
		if l.Name != "" {
			continue
		}
		l.Name = r.Name
		if len(limits) > 1 {
			l.Name += "-" + l.windowName()
			taken := func(o Limit) bool { return o.Name == l.Name }
			if slices.ContainsFunc(limits[:i], taken) {
				l.Name += "-" + l.Algorithm.String()
			}
			if slices.ContainsFunc(limits[:i], taken) {
				l.Name += "-" + strconv.Itoa(i+1)
			}
		}
	}
	return limits
}
