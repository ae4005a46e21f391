package policy

import (
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy/internal/expression"
	"github.com/floodgate-go/floodgate/policy/internal/paths"
)

// request is a request that the policies of a file decide on. It remembers what
// several policies need. It remembers nothing of the body: see core.Hooks, which
// says when a limiter reads a body twice.
type request struct {
	core.Request
	memo memo
}

type memo struct {
	only   []string    // the policies that decide; nil: all
	path   *paths.Path // nil: not known yet
	client expression.AddressMemo
	own    ownQuotas // of the rule that was asked last
}

// asks reports whether a policy decides on the request.
func (m *memo) asks(policy string) bool {
	return m == nil || m.only == nil || slices.Contains(m.only, policy)
}

type memoKey struct{}

// Value implements [core.Request]. The limiter gives hooks and key functions a
// request that wraps this one and asks it for values.
func (r *request) Value(key any) any {
	switch key.(type) {
	case memoKey:
		return &r.memo
	case expression.AddressMemoKey:
		return &r.memo.client
	}
	return r.Request.Value(key)
}

// remembered returns the memory of a request that a Set decides on, nil for any
// other.
func remembered(r core.Request) *memo {
	m, _ := r.Value(memoKey{}).(*memo)
	return m
}

// pathOf returns the path of a request.
func pathOf(r core.Request) *paths.Path {
	m := remembered(r)
	if m == nil {
		return paths.Of(r)
	}
	if m.path == nil {
		m.path = paths.Of(r)
	}
	return m.path
}
