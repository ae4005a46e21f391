package storetest

import (
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// modelWait is one wait of a lockout.
type modelWait struct {
	until int64 // when it ends; strikes decay from here
	level int64 // how many waits counted when it began, this one included
}

func (l *modelLimit) last() modelWait {
	if len(l.waits) == 0 {
		return modelWait{}
	}
	return l.waits[len(l.waits)-1]
}

func (l *modelLimit) locked(t int64) bool { return t < l.last().until }

// waitEnded reports whether a wait that began in the window from there has ended.
func (l *modelLimit) waitEnded(from, t int64) bool {
	return slices.ContainsFunc(l.waits, func(w modelWait) bool { return from < w.until && w.until <= t })
}

// waitLength multiplies in one step after another.
func (l *modelLimit) waitLength(before int64) int64 {
	d, most := l.Lockout.First.Microseconds(), l.Lockout.Max.Microseconds()
	for range before {
		if d *= l.Lockout.Factor; d > most {
			return most
		}
	}
	return d
}

func (l *modelLimit) beginWait(t int64) {
	before := int64(0)
	if w := l.last(); w.level > 0 {
		before = max(0, w.level-max(0, t-w.until)/l.Lockout.Decay.Microseconds())
	}
	level := before + 1
	if before > 0 && l.waitLength(before) == l.waitLength(before-1) { // it does not get longer
		level = before
	}
	l.waits = append(l.waits, modelWait{t + l.waitLength(before), level})
}

// endWait ends the wait if a refund has made room again, and takes back its strike. The other
// strikes decay from the beginning of the window.
func (l *modelLimit) endWait(t int64) {
	if l.Lockout == (core.Lockout{}) || !l.locked(t) {
		return
	}
	n, _, from := l.windows(t, 1)
	if n >= l.Quota {
		return
	}
	w := modelWait{level: l.last().level - 1}
	if w.level > 0 {
		w.until = from
	}
	l.waits = append(l.waits[:len(l.waits)-1], w)
}
