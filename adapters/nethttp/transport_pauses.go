package httplimit

import (
	"container/heap"
	"time"
)

// maxHosts is the most hosts whose pauses are remembered.
const maxHosts = 10_000

// pauses are the pauses that hosts have asked for. A heap, by their ends, finds the one to
// forget: a client that meets many hosts must not look at all of them for each answer.
type pauses struct {
	of    map[string]*pause
	byEnd endings
}

// pause is the pause of one host.
type pause struct {
	host string
	end  time.Time
	at   int // in the heap
}

// end returns the end of the host's pause, or the zero time if there is none.
func (p *pauses) end(host string, now time.Time) time.Time {
	one := p.of[host]
	if one == nil || !now.Before(one.end) {
		return time.Time{}
	}
	return one.end
}

// note remembers that a host's pause lasts until end. If there are too many, the one that ends
// first is forgotten.
func (p *pauses) note(host string, end, now time.Time) {
	for len(p.byEnd) > 0 && !now.Before(p.byEnd[0].end) {
		p.forgetFirst()
	}
	if one := p.of[host]; one != nil {
		if end.After(one.end) {
			one.end = end
			heap.Fix(&p.byEnd, one.at)
		}
		return
	}
	if len(p.byEnd) >= maxHosts {
		if !p.byEnd[0].end.Before(end) {
			return
		}
		p.forgetFirst()
	}
	if p.of == nil {
		p.of = map[string]*pause{}
	}
	p.of[host] = &pause{host: host, end: end}
	heap.Push(&p.byEnd, p.of[host])
}

func (p *pauses) forgetFirst() {
	delete(p.of, p.byEnd[0].host)
	heap.Pop(&p.byEnd)
}

// endings is a heap of pauses: the one that ends first is the first one.
type endings []*pause

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].end.Before(e[j].end) }

func (e endings) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].at, e[j].at = i, j
}

// Push implements heap.Interface.
func (e *endings) Push(x any) {
	one, _ := x.(*pause) // of note
	one.at = len(*e)
	*e = append(*e, one)
}

// Pop implements heap.Interface.
func (e *endings) Pop() any {
	last := len(*e) - 1
	one := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return one
}
