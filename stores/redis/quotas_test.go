package redisstore_test

import (
	"math/rand/v2"

	"github.com/floodgate-go/floodgate/core"
)

// anyQuotas returns quotas for one batch, nil for the limits' own.
func anyQuotas(r *rand.Rand, limits []core.Limit) (quotas []int64) {
	if r.IntN(2) == 0 {
		return nil
	}
	for _, l := range limits {
		most := int64(core.MaxQuota)
		if l.Algorithm == core.SlidingLog {
			most = core.MaxLogQuota
		}
		q := l.Quota
		switch r.IntN(8) {
		case 0:
			q = 0
		case 1:
			q = core.Unlimited
		case 2:
			q = 1 + r.Int64N(most)
		case 3, 4:
			q = min(most, 1+r.Int64N(2*l.Quota))
		case 5:
			q = min(most, max(1, l.Quota/2+r.Int64N(3)))
		}
		quotas = append(quotas, q)
	}
	return quotas
}

// smallQuotas returns quotas for one batch of a smallLimit, nil for the limits' own.
func smallQuotas(r *rand.Rand, limits []core.Limit) (quotas []int64) {
	if r.IntN(3) > 0 {
		return nil
	}
	for _, l := range limits {
		quotas = append(quotas, [...]int64{l.Quota, core.Unlimited, r.Int64N(9), max(1, l.Quota-1), l.Quota / 2}[r.IntN(5)])
	}
	return quotas
}
