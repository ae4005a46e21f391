package swapstore

import (
	"cmp"
	"slices"
)

// kept returns the foreign records that a write keeps: those that have not
// expired, and of too many the ones that expire last.
func (v *stored) kept(now int64) []foreignState {
	var kept []foreignState
	size := 0
	for _, f := range v.foreign {
		if f.expiry+foreignSlack.Microseconds() > now {
			kept = append(kept, f)
			size += len(f.record)
		}
	}
	if len(kept) <= maxForeign && size <= maxForeignBytes {
		return kept
	}
	slices.SortStableFunc(kept, func(a, b foreignState) int { return cmp.Compare(b.expiry, a.expiry) })
	kept = kept[:min(len(kept), maxForeign)]
	size = 0
	return slices.DeleteFunc(kept, func(f foreignState) bool {
		size += len(f.record)
		return size > maxForeignBytes
	})
}
