package resilient

import (
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// mirror is a copy of a batch for the counters of this process; the store works
// on the batch itself.
type mirror struct {
	batch   core.Batch
	items   []core.Item
	results []core.Result
	quotas  []int64
	asks    asks // what the ledger has noted of it
	known   bool // the store has charged it
}

var mirrors = sync.Pool{New: func() any { return new(mirror) }}

// newMirror copies a batch, but not its keys, which do not change. The quotas of the
// requests become this process's part of them.
func (b *bound) newMirror(batch *core.Batch) *mirror {
	m := mirrors.Get().(*mirror)
	m.items, m.results, m.quotas = append(m.items[:0], batch.Items...), m.results[:0], m.quotas[:0]
	for i := range m.items {
		m.results = append(m.results, m.items[i].Results...)
		for _, q := range m.items[i].Quotas {
			m.quotas = append(m.quotas, part(q, int64(b.config.Instances)))
		}
	}
	result, quota := 0, 0
	for i := range m.items {
		it := &m.items[i]
		r, q := result+len(it.Results), quota+len(it.Quotas)
		it.Results = m.results[result:r:r]
		if it.Quotas != nil {
			it.Quotas = m.quotas[quota:q:q]
		}
		result, quota = r, q
	}
	m.batch, m.known = *batch, false
	m.batch.Items = m.items
	return m
}

// charged reports whether the process has charged the batch.
func (m *mirror) charged() bool { return m.batch.Allowed && !m.batch.Peek }

// copyTo copies the decision of the process to the batch.
func (m *mirror) copyTo(batch *core.Batch) {
	batch.Allowed = m.batch.Allowed
	for i := range batch.Items {
		batch.Items[i].At = m.items[i].At
		copy(batch.Items[i].Results, m.items[i].Results)
	}
}

// free returns the mirror to its pool.
func (m *mirror) free() {
	clear(m.items)
	m.batch.Items = nil
	mirrors.Put(m)
}
