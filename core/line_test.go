package core

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A line is in the order in which its requests came, but for the head, which stays.
// Whoever is next is told when the head leaves. The lines of a key, and all lines, are bounded
// together. A slot that is given back calls the heads of all lines of the key.
func TestLinesAgreeWithAModel(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		if !modelOfLines(t, rand.New(rand.NewPCG(seed, 0))) { //nolint:gosec // a test
			t.Fatalf("seed %d", seed)
		}
	}
}

// aLine names a line of the model.
type aLine struct {
	name       string
	generation uint64
}

func modelOfLines(t *testing.T, r *rand.Rand) bool {
	var q lines
	s := &snapshot{maxWaiters: 6, maxWaitersTotal: 9}
	model := map[aLine][]*waiter{}
	draw := func() aLine { return aLine{[]string{"a", "b"}[r.IntN(2)], uint64(r.IntN(3))} } //nolint:gosec // a test
	costs := func(ws []*waiter) (sum int64) {
		for _, w := range ws {
			sum += w.cost
		}
		return sum
	}
	tickets := r.Perm(40)
	for _, ticket := range tickets {
		name := draw()
		ws, total, ofKey := model[name], 0, 0
		for other, ws := range model {
			if total += len(ws); other.name == name.name {
				ofKey += len(ws)
			}
		}
		full := total >= s.maxWaitersTotal || ofKey >= s.maxWaiters
		for _, other := range tickets {
			came := slices.ContainsFunc(ws, func(w *waiter) bool { return w.ticket < uint64(other) })
			if e, f := q.earlier([]byte(name.name), name.generation, uint64(other), s); e != came || f != full {
				t.Errorf("before ticket %d: %v, full %v; want %v, %v", other, e, f, came, full)
				return false
			}
		}
		at := len(ws)
		for at > 1 && ws[at-1].ticket > uint64(ticket) {
			at--
		}
		w, ahead := q.join([]byte(name.name), name.generation, uint64(ticket), r.Int64N(5), s)
		if (w == nil) != full || ahead != costs(ws[:at]) && !full || full && ahead != costs(ws) {
			t.Errorf("joined %v with %d before it, want %v, %d", w != nil, ahead, !full, costs(ws[:at]))
			return false
		}
		if w != nil {
			model[name] = slices.Insert(slices.Clone(ws), at, w)
		}
		if r.IntN(2) == 0 {
			name = draw()
			if ws := model[name]; len(ws) > 0 {
				i := r.IntN(len(ws))
				q.leave(ws[i])
				model[name] = slices.Delete(slices.Clone(ws), i, i+1)
				if i == 0 && len(ws) > 1 && len(ws[1].turn) == 0 {
					t.Error("the next one has not been told")
					return false
				}
			}
		}
		if !agree(t, &q, model, costs) {
			return false
		}
		if r.IntN(4) == 0 {
			q.freed([]byte(name.name))
			for other, ws := range model {
				if other.name == name.name && len(ws) > 0 && len(ws[0].turn) == 0 {
					t.Errorf("the head of %v was not called", other)
					return false
				}
			}
		}
	}
	return true
}

// agree compares the lines with their model.
func agree(t *testing.T, q *lines, model map[aLine][]*waiter, costs func([]*waiter) int64) bool {
	total := 0
	for name, ws := range model {
		l := q.of[name.name]
		for l != nil && l.generation != name.generation {
			l = l.other
		}
		if (l == nil) != (len(ws) == 0) {
			t.Errorf("line %v: %v with %d requests", name, l, len(ws))
			return false
		}
		if total += len(ws); l == nil {
			continue
		}
		var forth, back []*waiter
		for w := l.head; w != nil; w = w.next {
			forth = append(forth, w)
		}
		for w := l.tail; w != nil; w = w.prev {
			back = append(back, w)
		}
		slices.Reverse(back)
		if !slices.Equal(forth, ws) || !slices.Equal(back, ws) || l.length != len(ws) || l.cost != costs(ws) {
			t.Errorf("line %v has %d requests that cost %d, want %d and %d", name, l.length, l.cost, len(ws), costs(ws))
			return false
		}
		for i, w := range ws {
			if i > 0 && len(w.turn) > 0 {
				t.Errorf("request %d was told, and is not the head", i)
				return false
			}
			if got := q.ahead(w); got != costs(ws[:i]) {
				t.Errorf("%d are before request %d, want %d", got, i, costs(ws[:i]))
				return false
			}
		}
	}
	if got := q.waiting.Load(); got != int64(total) {
		t.Errorf("%d wait, want %d", got, total)
		return false
	}
	return true
}

// What a head has learnt serves those of its configuration, unless there is more room
// since it asked.
func TestWhatALineHasLearnt(t *testing.T) {
	var q lines
	s := &snapshot{maxWaiters: 1, maxWaitersTotal: 1}
	w, _ := q.join([]byte("a"), 0, 1, 1, s)
	for _, c := range []struct {
		what  string
		frees uint64
		by    *snapshot
		want  int
	}{
		{"nothing has happened since", 0, s, 1},
		{"leases have ended or hits were given back since", 1, s, 0},
		{"it is of another configuration", 0, &snapshot{}, 0},
	} {
		q.frees.Store(c.frees)
		q.learn(w.line, []Result{{Remaining: 3}}, s, 0)
		if got, _ := q.known(nil, w.line, c.by); len(got) != c.want {
			t.Errorf("%s: %d results are known, want %d", c.what, len(got), c.want)
		}
	}
}
