package memtable_test

import (
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

func (s *storeModel) someItems(limiter, n int) (items []core.Item) {
	rules := s.rules[limiter]
	for range n {
		rule := s.r.IntN(len(rules))
		key := []byte{byte(s.r.IntN(4)), byte(s.r.IntN(1 + s.tables.MaxKeys()/2)), byte(s.r.IntN(1 + s.tables.MaxKeys()/500))}
		if slices.ContainsFunc(items, func(o core.Item) bool { return o.Rule == rule && string(o.Key) == string(key) }) {
			continue
		}
		item := core.Item{Rule: rule, Key: key, Cost: 1, Results: make([]core.Result, len(rules[rule].Limits))}
		if s.r.IntN(5) == 0 {
			item.Cost = int64(s.r.IntN(4))
		}
		items = append(items, item)
	}
	return items
}

func (s *storeModel) key(limiter int, item *core.Item) modelKey {
	return modelKey{limiter, s.rules[limiter][item.Rule].Name, string(item.Key)}
}

// state returns a copy of the state of a limit of a key, with room for cost.
func (s *storeModel) state(k modelKey, l core.Limit, cost int64) (meter.Meter, []uint64) {
	m := meter.New(meter.FromCore(l))
	var w []uint64
	if held := s.keys[k]; held != nil {
		w = slices.Clone(held.words[meter.FromCore(l).Identity()])
	}
	if len(w) == 0 && !m.Grows() {
		w = make([]uint64, m.FixedWords())
	}
	if len(w) > 0 {
		m.Decide(new(meter.Result), w, s.now, 0)
	}
	if cost > 0 {
		w = m.Room(w, cost)
	}
	return m, w
}

func (s *storeModel) expired(k modelKey) bool {
	return !slices.ContainsFunc(s.limits(k), func(l core.Limit) bool {
		m, w := s.state(k, l, 0)
		return m.Expiry(w) > s.now
	})
}

func (s *storeModel) denied(k modelKey) bool {
	return slices.ContainsFunc(s.limits(k), func(l core.Limit) bool {
		m, w := s.state(k, l, 0)
		var r meter.Result
		m.Decide(&r, w, s.now, 1)
		return !r.Allowed
	})
}

func (s *storeModel) limits(k modelKey) []core.Limit {
	i := slices.IndexFunc(s.rules[k.limiter], func(r core.StoreRule) bool { return r.Name == k.rule })
	return s.rules[k.limiter][i].Limits
}
