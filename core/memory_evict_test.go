package core

import (
	"testing"
	"time"
)

// oneKey is a store with one key, which has used up two hits per hour.
func oneKey(t *testing.T, now *time.Time) (m *Memory, b *memoryBound, batch *Batch, p place) {
	t.Helper()
	m = Must(NewMemory(MemoryConfig{MaxKeys: 100, Clock: func() time.Time { return *now }}))
	b = Must(m.Bind("l", []StoreRule{{Name: "r", Limits: []Limit{PerHour(2)}}})).(*memoryBound)
	batch = &Batch{Items: []Item{{Key: []byte("k"), Cost: 2, Results: make([]Result, 1)}}}
	if err := b.Take(t.Context(), batch); err != nil || !batch.Allowed {
		t.Fatal(batch, err)
	}
	p = b.place(&batch.Items[0])
	p.table = m.shards[p.shard].tableFor(p.layout)
	p.find()
	if p.slot == nil || p.table.open.has(p.at) {
		t.Fatal("the key is not held, or its slot is open although it is denied")
	}
	return m, b, batch, p
}

// Eviction takes keys whose slot is open first. A key that is denied no more
// must not be spared.
func TestARefundOpensTheSlotOfADeniedKey(t *testing.T) {
	now := time.UnixMicro(codecNow)
	_, b, batch, p := oneKey(t, &now)
	if err := b.Refund(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if !p.table.open.has(p.at) || p.table.opens != 1 {
		t.Error("the slot is still closed")
	}
}

func TestTheSweepOpensTheSlotOfAKeyThatHasRecovered(t *testing.T) {
	now := time.UnixMicro(codecNow)
	m, _, _, p := oneKey(t, &now)
	sweep := func(at time.Time) bool {
		s := &m.shards[p.shard]
		for range p.table.slots {
			s.sweep(m, p.table, at.UnixMicro())
		}
		return p.table.open.has(p.at)
	}
	if sweep(now) {
		t.Error("the slot of a key that is denied is open")
	}
	// The sliding window still has a part of the hits, but not all of them.
	if !sweep(now.Add(2*time.Hour-time.Minute)) || p.table.opens != 1 || m.Len() != 1 {
		t.Errorf("%d keys are held, of which %d have an open slot; want 1 and 1", m.Len(), p.table.opens)
	}
}

// Searches go round the table: they do not weigh the same keys again and again.
func TestASearchBeginsWhereTheLastOneEnded(t *testing.T) {
	table := testTable(PerHour(5))
	for i := range uint64(100) {
		slot := table.slot(table.insert(hash128{(i + 1) << 56, i}))
		table.layout.meters[0].charge(table.state(slot, 0), codecNow, 1)
	}
	last := -1
	for i := range 100 / table.layout.sample {
		v := table.search(nil, codecNow)
		if v.table == nil || v.slot <= last {
			t.Fatalf("search %d found slot %d after slot %d, want one further on", i+1, v.slot, last)
		}
		last = v.slot
	}
}

func TestADeniedKeyWeighsItsLongestWait(t *testing.T) {
	for name, limits := range map[string][]Limit{
		"the longest first": {PerDay(1), PerMinute(1)},
		"the longest last":  {PerMinute(1), PerDay(1)},
	} {
		table := testTable(limits...)
		slot := table.slot(table.insert(hash128{1 << 50, 1}))
		var want int64
		for i := range table.layout.meters {
			m, w := &table.layout.meters[i], table.state(slot, i)
			m.charge(w, codecNow, 1)
			want = max(want, m.wait(w, codecNow, 1))
		}
		denied, weight := table.weigh(slot, codecNow)
		if day := (24 * time.Hour).Microseconds(); !denied || weight != want || weight < day {
			t.Errorf("%s: denied %v, weight %d, want %d", name, denied, weight, want)
		}
	}
}
