package core

import (
	"fmt"
	"log/slog"
	"sync"
)

// Unreadable says what a store makes of a stored value that it cannot read: one
// that is not of the store's format, because somebody else has written it under
// the name of a counter, or because it has been damaged. A store logs such
// values. Operations do not fail because of them. Values have no checksum: one
// that has been damaged and is still of the format is read as it is.
//
// A value in a format of a later version of this module is never replaced: its
// key is denied as with DenyUnreadable, and the value is left as it is until it
// expires.
type Unreadable uint8

const (
	// ReplaceUnreadable counts the value as none: the next charge replaces it.
	// The key's hits so far are forgotten.
	ReplaceUnreadable Unreadable = iota
	// DenyUnreadable counts the value as a quota that is used up: the key is
	// denied for the shortest window of its rule's limits, and begins anew
	// after that.
	DenyUnreadable
)

// String returns the choice in a word.
func (u Unreadable) String() string {
	switch u {
	case ReplaceUnreadable:
		return "replace"
	case DenyUnreadable:
		return "deny"
	default:
		return fmt.Sprintf("Unreadable(%d)", uint8(u))
	}
}

func (u Unreadable) check() error {
	if u > DenyUnreadable {
		return fmt.Errorf("%w: Unreadable: %v: must be ReplaceUnreadable or DenyUnreadable", ErrConfig, u)
	}
	return nil
}

// unreadableReports logs stored values that cannot be read.
type unreadableReports struct {
	log *slog.Logger // nil: the default one at that time

	mu   sync.Mutex
	next int64 // not before this time
	more int   // have been left out since the last line
}

// reportEvery is the shortest time between two lines, in microseconds.
const reportEvery = 60_000_000

func (u *unreadableReports) report(limiter, name string, denied bool, now int64) {
	u.mu.Lock()
	more := u.more
	wait := now < u.next && u.next-now <= reportEvery
	if wait {
		u.more++
	} else {
		u.next, u.more = now+reportEvery, 0
	}
	u.mu.Unlock()
	if wait {
		return
	}
	log := u.log
	if log == nil {
		log = slog.Default()
	}
	action := ReplaceUnreadable
	if denied {
		action = DenyUnreadable
	}
	log.Warn("floodgate: a stored value cannot be read", "limiter", limiter, "name", name, "action", action.String(), "more", more)
}
