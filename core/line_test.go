package core

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A line is in the order in which its requests came, but for the head, which stays.
// Whoever is next is told when the head leaves. Lines and their sum are bounded.
func TestLinesAgreeWithAModel(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		if !modelOfLines(t, rand.New(rand.NewPCG(seed, 0))) { //nolint:gosec // a test
			t.Fatalf("seed %d", seed)
		}
	}
}

func modelOfLines(t *testing.T, r *rand.Rand) bool {
	var q lines
	s := &snapshot{maxWaiters: 6, maxWaitersTotal: 9}
	names := []string{"a", "b"}
	model := map[string][]*waiter{}
	costs := func(ws []*waiter) (sum int64) {
		for _, w := range ws {
			sum += w.cost
		}
		return sum
	}
	tickets := r.Perm(40)
	for _, ticket := range tickets {
		name := names[r.IntN(len(names))]
		ws := model[name]
		total := len(model["a"]) + len(model["b"])
		full := total >= s.maxWaitersTotal || len(ws) >= s.maxWaiters
		for _, other := range tickets {
			came := slices.ContainsFunc(ws, func(w *waiter) bool { return w.ticket < uint64(other) })
			if e, f := q.earlier([]byte(name), uint64(other), s); e != came || f != full {
				t.Errorf("before ticket %d: %v, full %v; want %v, %v", other, e, f, came, full)
				return false
			}
		}
		at := len(ws)
		for at > 1 && ws[at-1].ticket > uint64(ticket) {
			at--
		}
		w, ahead := q.join([]byte(name), uint64(ticket), r.Int64N(5), s)
		if (w == nil) != full || ahead != costs(ws[:at]) && !full || full && ahead != costs(ws) {
			t.Errorf("joined %v with %d before it, want %v, %d", w != nil, ahead, !full, costs(ws[:at]))
			return false
		}
		if w != nil {
			model[name] = slices.Insert(slices.Clone(ws), at, w)
		}
		if r.IntN(2) == 0 {
			name = names[r.IntN(len(names))]
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
	}
	return true
}

// agree compares the lines with their model.
func agree(t *testing.T, q *lines, model map[string][]*waiter, costs func([]*waiter) int64) bool {
	total := 0
	for name, ws := range model {
		l := q.of[name]
		if (l == nil) != (len(ws) == 0) {
			t.Errorf("line %s: %v with %d requests", name, l, len(ws))
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
			t.Errorf("line %s has %d requests that cost %d, want %d and %d", name, l.length, l.cost, len(ws), costs(ws))
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

// What a head has learnt serves those of its configuration, unless leases have ended
// since it asked.
func TestWhatALineHasLearnt(t *testing.T) {
	var q lines
	s := &snapshot{maxWaiters: 1, maxWaitersTotal: 1, leases: true}
	w, _ := q.join([]byte("a"), 1, 1, s)
	for _, c := range []struct {
		what   string
		leases bool
		frees  uint64
		by     *snapshot
		want   int
	}{
		{"nothing has happened since", true, 0, s, 1},
		{"leases have ended since", true, 1, s, 0},
		{"the limiter has no leases", false, 1, s, 1},
		{"it is of another configuration", true, 0, &snapshot{}, 0},
	} {
		s.leases = c.leases
		q.frees.Store(c.frees)
		q.learn(w.line, []Result{{Remaining: 3}}, s, 0)
		if got, _ := q.known(nil, w.line, c.by); len(got) != c.want {
			t.Errorf("%s: %d results are known, want %d", c.what, len(got), c.want)
		}
	}
}
