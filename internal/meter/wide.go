package meter

import "math/bits"

// Less reports whether a × b < c × d, for numbers that are not negative.
func Less(a, b, c, d int64) bool { return wideMul(a, b).less(wideMul(c, d)) }

// MulDiv returns a × b / c and the remainder, with the product in 128 bits. The arguments are not
// negative, c is not 0, and the quotient fits in 63 bits.
func MulDiv(a, b, c int64) (q, r int64) { return wideMul(a, b).div(c) }

// wide is an unsigned number of 128 bits.
type wide struct{ hi, lo uint64 }

func wideMul(a, b int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return wide{hi, lo}
}

func (x wide) add(y wide) wide {
	lo, carry := bits.Add64(x.lo, y.lo, 0)
	hi, _ := bits.Add64(x.hi, y.hi, carry)
	return wide{hi, lo}
}

// sub returns x − y, 0 if that would be negative.
func (x wide) sub(y wide) wide {
	if x.less(y) {
		return wide{}
	}
	lo, borrow := bits.Sub64(x.lo, y.lo, 0)
	hi, _ := bits.Sub64(x.hi, y.hi, borrow)
	return wide{hi, lo}
}

func (x wide) less(y wide) bool {
	return x.hi < y.hi || x.hi == y.hi && x.lo < y.lo
}

// div returns the quotient and the remainder of x / d. The quotient must fit in 63 bits.
func (x wide) div(d int64) (q, r int64) {
	uq, ur := bits.Div64(x.hi, x.lo, uint64(d))
	return int64(uq), int64(ur)
}

// divUp is div rounded up.
func (x wide) divUp(d int64) int64 {
	q, r := x.div(d)
	if r > 0 {
		q++
	}
	return q
}

// floorDiv returns a / b rounded towards minus infinity; b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// floorTo returns the largest multiple of step that is not above a; step > 0.
func floorTo(a, step int64) int64 { return floorDiv(a, step) * step }
