package meter

import (
	"encoding/binary"
	"testing"
)

func TestDamagedLeases(t *testing.T) {
	m := leaseMeter(5, second)
	w := make([]uint64, leasesHeader+leaseWords*2)
	m.Lease(w, now0, 7, 2)
	m.Lease(w, now0+5, 9, 1)
	whole := m.AppendState(nil, w)
	for cut := range whole {
		if r := (Reader{Rest: whole[:cut]}); m.ReadState(&r) != nil && !r.Bad && leases(w) == 2 {
			t.Errorf("%v is read", whole[:cut])
		}
	}
	for name, b := range map[string][]byte{
		"a cost of 0":    {1, 1, 2, 3, 4, 5, 6, 7, 8, 20, 0},
		"a late end":     {1, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1},
		"too many":       {0xff, 0xff, 0xff, 0x7f},
		"more than fit":  {9, 1, 2, 3, 4, 5, 6, 7, 8, 20, 1},
		"an endless end": {1, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
	} {
		if r := (Reader{Rest: b}); m.ReadState(&r) != nil || !r.Bad {
			t.Errorf("%s: is read", name)
		}
	}
}

// The ends of leases may be as far apart as two times can be, and no further.
func TestTheBoundsOfStoredLeases(t *testing.T) {
	m := leaseMeter(5, second)
	lease := func(b []byte, difference int64) []byte {
		return append(binary.AppendVarint(append(b, 1, 2, 3, 4, 5, 6, 7, 8), difference), 1)
	}
	for name, row := range map[string]struct {
		differences []int64
		bad         bool
	}{
		"the latest end":                {[]int64{maxTime}, false},
		"a later end":                   {[]int64{maxTime + 1}, true},
		"the earliest end":              {[]int64{-maxTime}, false},
		"an earlier end":                {[]int64{-maxTime - 1}, true},
		"the earliest after the latest": {[]int64{maxTime, -2 * maxTime}, false},
		"further back":                  {[]int64{maxTime, -2*maxTime - 1}, true},
		"the latest after the earliest": {[]int64{-maxTime, 2 * maxTime}, false},
		"further on":                    {[]int64{-maxTime, 2*maxTime + 1}, true},
		"back to the latest":            {[]int64{2*maxTime + 1, -maxTime - 1}, true},
	} {
		b := []byte{byte(len(row.differences))}
		for _, d := range row.differences {
			b = lease(b, d)
		}
		r := Reader{Rest: b}
		if w := m.ReadState(&r); r.Bad != row.bad || leases(w) != len(row.differences) && !row.bad {
			t.Errorf("%s: bad is %t, %d leases", name, r.Bad, leases(w))
		}
	}
	// The shortest leases: a number of eight bytes, and one byte each for the difference and the cost.
	short := lease(lease([]byte{2}, 5), 0)
	if r := (Reader{Rest: short}); len(short) != 21 || leases(m.ReadState(&r)) != 2 || r.Bad {
		t.Errorf("%v is not read", short)
	}
	for _, more := range [][]byte{{3}, {200, 1}} { // more leases than there are bytes for
		if r := (Reader{Rest: append(more, short[1:]...)}); m.ReadState(&r) != nil || !r.Bad {
			t.Errorf("%v leases of two are read", more)
		}
	}
}
