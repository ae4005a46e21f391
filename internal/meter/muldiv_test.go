package meter

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestWideArithmeticIsExact(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	number := func() int64 { return r.Int64() >> r.IntN(63) }
	toBig := func(x wide) *big.Int {
		n := new(big.Int).SetUint64(x.hi)
		return n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(x.lo))
	}
	for range 100_000 {
		a, b, c := number(), number(), number()
		x, y := wideMul(a, b), wideMul(c, c)
		if got, want := toBig(x), new(big.Int).Mul(big.NewInt(a), big.NewInt(b)); got.Cmp(want) != 0 {
			t.Fatalf("%d × %d = %v", a, b, got)
		}
		if got, want := toBig(x.add(y)), new(big.Int).Add(toBig(x), toBig(y)); got.Cmp(want) != 0 {
			t.Fatalf("%v + %v = %v", x, y, got)
		}
		if want := new(big.Int).Sub(toBig(x), toBig(y)); want.Sign() >= 0 && toBig(x.sub(y)).Cmp(want) != 0 || want.Sign() < 0 && !x.sub(y).zero() {
			t.Fatalf("%v − %v = %v", x, y, x.sub(y))
		}
		if x.less(y) != (toBig(x).Cmp(toBig(y)) < 0) {
			t.Fatalf("%v < %v", x, y)
		}
		if d := max(b, c) + 1; d > 0 && x.hi < uint64(d) {
			q, rem := new(big.Int).QuoRem(toBig(x), big.NewInt(d), new(big.Int))
			if q.IsInt64() {
				if gq, gr := x.div(d); gq != q.Int64() || gr != rem.Int64() || mulDiv(a, b, d) != gq {
					t.Fatalf("%v / %d = %d, rest %d", x, d, gq, gr)
				}
			}
		}
		if d := c>>1 + 1; floorDiv(-a, d) != new(big.Int).Div(big.NewInt(-a), big.NewInt(d)).Int64() {
			t.Fatalf("%d / %d = %d", -a, d, floorDiv(-a, d))
		}
	}
}
