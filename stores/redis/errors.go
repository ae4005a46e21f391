package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Class is what kind of failure an [Error] is.
type Class uint8

const (
	// Other is a failure of no class below.
	Other Class = iota
	// TimedOut means that the store's deadline has passed.
	TimedOut
	// Canceled means that the caller's context has ended before.
	Canceled
	// Unreachable means that the server could not be reached, or the
	// connection to it broke.
	Unreachable
	// NotReady means that the server did not run the command, and may later: it
	// is loading its data, is a replica, or its cluster is being changed.
	NotReady
	// Forbidden means that the server does not let this user do this.
	Forbidden
	// Full means that the server has no memory left for writing.
	Full
	// BadReply means that the reply was not one to the command that was sent.
	BadReply
	// Damaged means that what is stored for one of the keys led to results that
	// make no sense. The error wraps core.ErrDamaged.
	Damaged
)

var classNames = [...]string{"failed", "timed out", "canceled", "unreachable", "not ready", "forbidden", "full", "bad reply", "damaged"}

// String returns the class in a word or two.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown class"
}

// Error is the error of all operations of a store.
type Error struct {
	Class Class
	// Unknown says that the command may have run: it was sent, and no reply
	// told. It is never sent again.
	Unknown bool
	// Err is the client's or the server's error.
	Err error
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

var errBusy = errors.New("too many commands wait for an answer")

// What the server's errors begin with, by class.
var replies = []struct {
	prefix string
	class  Class
}{
	{"OOM ", Full}, {"NOAUTH ", Forbidden}, {"WRONGPASS ", Forbidden}, {"NOPERM ", Forbidden},
	{"NOSCRIPT ", NotReady}, {"ERR max number of clients reached", NotReady},
}

// classify makes an Error of what the client returned for a command.
func classify(err error, o *once) error {
	e := &Error{Err: err}
	var reply redis.Error
	if errors.As(err, &reply) {
		text := reply.Error()
		for _, r := range replies {
			if strings.HasPrefix(text, r.prefix) {
				e.Class = r.class
			}
		}
		if ranNot(err) {
			e.Class = NotReady
		}
		return e
	}
	e.Unknown = o.sent()
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errWithdrawn), errors.As(err, &network) && network.Timeout():
		e.Class = TimedOut
	default:
		e.Class = Unreachable
	}
	return e
}
