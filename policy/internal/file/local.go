package file

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// Local has the settings of the process.
type Local struct {
	MaxKeys                     int // of local counters
	MaxWaiting, MaxWaitingOfKey int // requests
}

func newLocal() Local {
	return Local{MaxKeys: core.DefaultMaxKeys, MaxWaiting: 10_000, MaxWaitingOfKey: 100}
}

func localMapping() *mapping[Local] {
	none := newLocal()
	waiting := whole[int](1, 1_000_000)
	return &mapping[Local]{
		name: "local", want: "a mapping with max-keys", about: "Settings of this process.",
		fields: []field[Local]{
			{
				name: "max-keys", initial: fmt.Sprint(none.MaxKeys), example: "500000",
				about: "The largest number of keys that are held at a time; beyond it, new keys evict others.",
				value: set(whole[int](1, 1<<31-1), func(l *Local) *int { return &l.MaxKeys }),
			}, {
				name: "max-waiting", initial: fmt.Sprint(none.MaxWaiting), example: "2000",
				about: "The largest number of requests that wait at a time, as `wait` lets them; one more is denied at once.",
				value: set(waiting, func(l *Local) *int { return &l.MaxWaiting }),
			}, {
				name: "max-waiting-of-key", initial: fmt.Sprint(none.MaxWaitingOfKey), example: "20",
				about: "The largest number of requests that wait at a time for one key of a rule.",
				value: set(waiting, func(l *Local) *int { return &l.MaxWaitingOfKey }),
			},
		},
		check: func(r *reader, m filled, l *Local) {
			if of := m.given["max-waiting-of-key"]; has(m.given, "max-waiting-of-key") && l.MaxWaitingOfKey > l.MaxWaiting {
				r.doubt(of, fmt.Sprintf("%d: no more than max-waiting (%d) wait at a time, for all keys together", l.MaxWaitingOfKey, l.MaxWaiting),
					"write a smaller number, or a larger max-waiting")
			}
		},
	}
}
