package meter

import "math"

// cell is the state of the algorithms that keep one time and two small numbers
// for a key. All zero is the state of a key never seen.
//
//	FixedWindow    t: start of the window   a: its hits
//	SlidingWindow  t: start of the window   a: its hits   b: the previous window's hits
//	Calendar       t: start of the window   a: its hits   b: its length in seconds
//	TokenBucket    t + a/b: when the bucket is full again   b: the quota that pays the debt off
type cell struct {
	t    int64
	a, b uint32
}

// cellWords is the number of words of a cell.
const cellWords = 2

func loadCell(w []uint64) cell {
	_ = w[1]
	return cell{int64(w[0]), uint32(w[1]), uint32(w[1] >> 32)}
}

func (c cell) store(w []uint64) {
	_ = w[1]
	w[0], w[1] = uint64(c.t), uint64(c.a)|uint64(c.b)<<32
}

// fixedSize is shared by the algorithms whose states do not grow.
type fixedSize struct{}

func (*fixedSize) grow(to, from []uint64) { copy(to, from) }

// inCell is shared by the algorithms whose state is a cell.
type inCell struct{ fixedSize }

func (*inCell) words(*Meter, []uint64, int64) int { return cellWords }

// append writes a cell: a signed time and two counts.
func (*inCell) append(_ *Meter, dst []byte, w []uint64) []byte {
	c := loadCell(w)
	dst = appendTime(dst, c.t)
	dst = appendCount(dst, uint64(c.a))
	return appendCount(dst, uint64(c.b))
}

func (*inCell) read(_ *Meter, r *Reader) []uint64 {
	c := r.cell()
	if c.a > MaxCount || c.b > MaxCount {
		r.Bad = true
	}
	return r.words(c)
}

func (r *Reader) cell() cell {
	return cell{t: r.Time(), a: uint32(r.Uvarint(math.MaxUint32)), b: uint32(r.Uvarint(math.MaxUint32))}
}

func (r *Reader) words(c cell) []uint64 {
	if r.Bad {
		return nil
	}
	w := make([]uint64, cellWords)
	c.store(w)
	return w
}

// addCount returns a count of hits after n more, which stops at MaxCount.
func addCount(count uint32, n int64) uint32 {
	return uint32(min(int64(count)+n, max(MaxCount, int64(count))))
}
