package core

import (
	"fmt"
	"slices"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
)

// memoryBound is the Bound of a Memory.
type memoryBound struct {
	m       *Memory
	limiter string
	keys    *memtable.Binding
	rules   []StoreRule
}

// Bind implements [Store].
func (m *Memory) Bind(limiter string, rules []StoreRule) (Bound, error) {
	all, err := tableRules(rules)
	if err != nil {
		return nil, err
	}
	if err := m.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", ErrConfig, limiter, err)
	}
	keys, err := m.tables.Bind(limiter, all)
	if err != nil {
		m.names.Unclaim(limiter)
		return nil, fmt.Errorf("binding limiter %q: %w", limiter, ErrClosed)
	}
	return &memoryBound{m, limiter, keys, rules}, nil
}

// Rebind implements [Bound].
func (b *memoryBound) Rebind(rules []StoreRule) (Bound, error) {
	all, err := tableRules(rules)
	if err != nil {
		return nil, err
	}
	keys, err := b.keys.Rebind(all)
	if err != nil {
		return nil, fmt.Errorf("binding limiter %q: %w", b.limiter, ErrClosed)
	}
	return &memoryBound{b.m, b.limiter, keys, rules}, nil
}

// tableRules returns the rules as package memtable holds their keys.
func tableRules(rules []StoreRule) ([]memtable.Rule, error) {
	all := make([]memtable.Rule, len(rules))
	for i, r := range rules {
		if slices.ContainsFunc(rules[:i], func(o StoreRule) bool { return o.Name == r.Name }) {
			return nil, fmt.Errorf("%w: rule %q: two rules have this name", ErrConfig, r.Name)
		}
		all[i].Name = r.Name
		for _, l := range r.Limits {
			all[i].Limits = append(all[i].Limits, l.meter())
		}
	}
	return all, nil
}
