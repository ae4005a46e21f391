package resilient

import (
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// mirror is a batch for the counters of this process, beside the one that the
// store works on.
type mirror struct {
	batch   core.Batch
	items   []core.Item
	results []core.Result
}

var mirrors = sync.Pool{New: func() any { return new(mirror) }}

// newMirror copies a batch but for the keys, which nobody changes meanwhile.
func newMirror(batch *core.Batch) *mirror {
	m := mirrors.Get().(*mirror)
	m.items, m.results = append(m.items[:0], batch.Items...), m.results[:0]
	for i := range m.items {
		m.results = append(m.results, m.items[i].Results...)
	}
	from := 0
	for i := range m.items {
		to := from + len(m.items[i].Results)
		m.items[i].Results = m.results[from:to:to]
		from = to
	}
	m.batch = *batch
	m.batch.Items = m.items
	return m
}

// single makes the mirror one of a hit for rules of one limit each.
func (m *mirror) single() {
	for i := range m.items {
		it := &m.items[i]
		it.Cost = min(it.Cost, 1)
		if len(it.Results) == 0 { // of a Reset
			it.Results = make([]core.Result, 1)
		}
		it.Results = it.Results[:1]
	}
}

// charged says that the process has charged the batch.
func (m *mirror) charged() bool { return m.batch.Allowed && !m.batch.Peek }

// copyTo makes what the process has said the answer to the batch.
func (m *mirror) copyTo(batch *core.Batch) {
	batch.Allowed = m.batch.Allowed
	for i := range batch.Items {
		batch.Items[i].At = m.items[i].At
		copy(batch.Items[i].Results, m.items[i].Results)
	}
}

// free gives the mirror back.
func (m *mirror) free() {
	clear(m.items)
	m.batch.Items = nil
	mirrors.Put(m)
}
