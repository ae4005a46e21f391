package core

import "slices"

func (s *storeModel) someItems(limiter, n int) (items []Item) {
	rules := s.rules[limiter]
	for range n {
		rule := s.r.IntN(len(rules))
		key := []byte{byte(s.r.IntN(4)), byte(s.r.IntN(1 + int(s.m.maxKeys)/2)), byte(s.r.IntN(1 + int(s.m.maxKeys)/500))}
		if slices.ContainsFunc(items, func(o Item) bool { return o.Rule == rule && string(o.Key) == string(key) }) {
			continue
		}
		item := Item{Rule: rule, Key: key, Cost: 1, Results: make([]Result, len(rules[rule].Limits))}
		if s.r.IntN(5) == 0 {
			item.Cost = int64(s.r.IntN(4))
		}
		items = append(items, item)
	}
	return items
}

func (s *storeModel) key(limiter int, item *Item) modelKey {
	return modelKey{limiter, s.rules[limiter][item.Rule].Name, string(item.Key)}
}

// state returns a copy of the state of a limit of a key, with room for cost.
func (s *storeModel) state(k modelKey, l Limit, cost int64) (meter, []uint64) {
	m := newMeter(l)
	var w []uint64
	if held := s.keys[k]; held != nil {
		w = slices.Clone(held.words[l.identity()])
	}
	if len(w) == 0 && !m.grows() {
		w = make([]uint64, m.fixedWords())
	}
	if len(w) > 0 {
		m.advance(w, s.now)
	}
	if need := m.words(w, cost); cost > 0 && len(w) < need {
		longer := make([]uint64, need)
		m.grow(longer, w)
		w = longer
	}
	return m, w
}

func (s *storeModel) expired(k modelKey) bool {
	return !slices.ContainsFunc(s.limits(k), func(l Limit) bool {
		m, w := s.state(k, l, 0)
		return !blank(&m, w, s.now)
	})
}

func (s *storeModel) denied(k modelKey) bool {
	return slices.ContainsFunc(s.limits(k), func(l Limit) bool {
		m, w := s.state(k, l, 0)
		return m.remaining(w, s.now) == 0
	})
}

func (s *storeModel) limits(k modelKey) []Limit {
	i := slices.IndexFunc(s.rules[k.limiter], func(r StoreRule) bool { return r.Name == k.rule })
	return s.rules[k.limiter][i].Limits
}
