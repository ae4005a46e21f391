package joining

// queue is a first-in, first-out queue.
type queue[T any] struct {
	ring    []T // its length is a power of two
	head, n int
}

func (q *queue[T]) push(x T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(8, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = x
	q.n++
}

func (q *queue[T]) first() T { return q.ring[q.head] }

func (q *queue[T]) pop() {
	var none T
	q.ring[q.head] = none
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
}
