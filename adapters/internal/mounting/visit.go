package mounting

import "github.com/floodgate-go/floodgate/core"

// Visit notes, in what a framework keeps for a request, that a checker has seen
// it, and what it decided.
type Visit struct {
	Checker  core.Checker
	Decision core.Decision
	Before   *Visit // nil: the first
}

// Saw says that c is among the checkers that have seen the request.
func (v *Visit) Saw(c core.Checker) bool {
	for ; v != nil; v = v.Before {
		if v.Checker == c {
			return true
		}
	}
	return false
}

// Key is the name under which frameworks whose keys are strings keep the last
// Visit.
const Key = "github.com/floodgate-go/floodgate.visit"
