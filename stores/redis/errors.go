package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// Class is the kind of failure of an [Error].
type Class uint8

const (
	// ClassOther is any other failure.
	ClassOther Class = iota
	// ClassTimedOut means that the store's deadline has passed.
	ClassTimedOut
	// ClassCanceled means that the caller's context has ended first.
	ClassCanceled
	// ClassUnreachable means that the server could not be reached, or the
	// connection to it broke.
	ClassUnreachable
	// ClassNotReady means that the server did not run the command, and may run
	// it later: it is loading its data, is a replica, or its cluster is being
	// changed.
	ClassNotReady
	// ClassForbidden means that the server does not permit this user the
	// command.
	ClassForbidden
	// ClassFull means that the server has no memory left for writing.
	ClassFull
	// ClassBadReply means that the reply was to another command.
	ClassBadReply
	// ClassDamaged means that a stored value led to results that make no sense. The error wraps
	// core.ErrDamaged.
	ClassDamaged
)

var classNames = [...]string{"failed", "timed out", "canceled", "unreachable", "not ready", "forbidden", "full", "bad reply", "damaged"}

// String returns the class in a word or two.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown class"
}

// Error is the error of all operations of a store. It wraps
// core.ErrNotCharged if the operation has charged none of its keys.
type Error struct {
	Class Class
	// Unknown means that the command may have run: it was sent, and no reply showed whether it ran.
	// It is never sent again.
	Unknown bool
	// Err is the client's or the server's error.
	Err error

	others bool // other keys of the operation may have been charged
}

func (e *Error) Error() string {
	text := "redis: " + e.Class.String()
	if e.Unknown {
		text += " (it may have been charged)"
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is core.ErrNotCharged and nothing was charged.
func (e *Error) Is(target error) bool {
	return target == core.ErrNotCharged && !e.Unknown && !e.others
}

// afterOthers returns the error of a command that failed after the operation has
// charged other keys with other commands.
func afterOthers(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	after := *e
	after.others = true
	return &after
}

// The beginnings of the server's errors, by class. A server that replies one of
// them, or one of notNow, has written nothing. Any other error may be that of a
// proxy which has sent the command on.
var replies = []struct {
	prefix string
	class  Class
}{
	{"OOM ", ClassFull}, {"NOAUTH ", ClassForbidden}, {"WRONGPASS ", ClassForbidden}, {"NOPERM ", ClassForbidden},
	// A command in the script: before Redis 7.0, Redis 7.0, and later ones.
	{"The user executing the script can't ", ClassForbidden}, {"ERR The user executing the script can't ", ClassForbidden}, {"ERR ACL failure in script", ClassForbidden},
	{"NOSCRIPT ", ClassNotReady}, {"ERR max number of clients reached", ClassNotReady},
	// The script's, for a charge to a value that it must not replace.
	{"FLOODGATE newer: ", ClassOther},
	{"MISCONF ", ClassOther}, {"NOREPLICAS ", ClassOther}, {"BUSY ", ClassOther}, {"CROSSSLOT ", ClassOther}, {"ERR unknown command", ClassOther}, {edgesPrefix, ClassOther},
}

// classify makes an Error of the error that the client returned for a command.
// sent reports whether it may have run, if nothing tells.
func classify(err error, sent bool) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	e := &Error{Err: err}
	var reply redis.Error
	if errors.As(err, &reply) {
		text := reply.Error()
		e.Unknown = true
		for _, r := range replies {
			if strings.HasPrefix(text, r.prefix) {
				e.Class, e.Unknown = r.class, false
			}
		}
		if ranNot(err) {
			e.Class, e.Unknown = ClassNotReady, false
		}
		return e
	}
	e.Unknown = sent
	var network net.Error
	switch {
	case errors.Is(err, errPanic):
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errWithdrawn), errors.As(err, &network) && network.Timeout():
		e.Class = ClassTimedOut
	default:
		e.Class = ClassUnreachable
	}
	return e
}

// scriptPlace is what servers before Redis 7 write before the error of a command in
// a script.
var scriptPlace = regexp.MustCompile(`^(?:ERR Error running script \(call to f_[0-9a-f]*\): )?(?:@user_script: ?\d+: )+-?`)

// ownError returns a server's error without the place in the script.
func ownError(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	if place := scriptPlace.FindString(reply.Error()); place != "" {
		return scriptError(strings.TrimSpace(reply.Error()[len(place):]))
	}
	return err
}
