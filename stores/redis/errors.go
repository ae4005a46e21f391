package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// Error is the error of all operations of a store. It wraps core.ErrNotCharged if the operation has
// charged none of its keys, context.DeadlineExceeded if the time was up, the cause of the caller's
// context if that has ended first, and core.ErrDamaged if a stored value led to results that make no
// sense.
type Error struct {
	// Unknown means that the command may have run: it was sent, and no reply showed whether it ran.
	// It is never sent again.
	Unknown bool
	// Err is the client's or the server's error.
	Err error

	others bool // other keys of the operation may have been charged
}

func (e *Error) Error() string {
	if e.Unknown {
		return fmt.Sprintf("redis: the command may have run: %v", e.Err)
	}
	return fmt.Sprintf("redis: %v", e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is core.ErrNotCharged and nothing was charged.
func (e *Error) Is(target error) bool {
	return target == core.ErrNotCharged && !e.Unknown && !e.others
}

// afterOthers returns err, which may be nil, as that of an operation whose other commands may have
// charged other keys.
func afterOthers(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	after := *e
	after.others = true
	return &after
}

// notNow begins the errors of a server that has not run the command. The same server may run
// it soon, or another server may.
var notNow = []string{"MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN ", "LOADING ", "READONLY ", "MASTERDOWN "}

// nothingRan begins the errors of a server that has written nothing and will not. Any other error may
// be that of a proxy which has sent the command on.
var nothingRan = []string{
	"OOM ", "NOAUTH ", "WRONGPASS ", "NOPERM ", "NOSCRIPT ", "MISCONF ", "NOREPLICAS ", "BUSY ", "CROSSSLOT ",
	"ERR max number of clients reached", "ERR unknown command",
	// A command in the script: Redis 7.0, and later ones.
	"ERR The user executing the script can't ", "ERR ACL failure in script",
	"FLOODGATE calendar: ", // the script's: the clocks differ by a window
}

// begins reports whether err is a server's error that begins with one of the texts.
func begins(err error, texts []string) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, text := range texts {
		if strings.HasPrefix(reply.Error(), text) {
			return true
		}
	}
	return false
}

// ranNot reports whether err proves that the command did not run, and that it may be sent again.
func ranNot(err error) bool { return begins(err, notNow) }

// crossesSlots reports whether a server, or a proxy before several, has
// rejected the command because its keys are not in one place. Nothing has run.
func crossesSlots(err error) bool { return begins(err, []string{"CROSSSLOT "}) }

// scriptError is the server's error for one of several decisions.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (scriptError) RedisError() {}

// classify makes an Error of the error that the client returned for a command. sent decides whether
// the command may have run if the error does not say.
func classify(err error, sent bool) error {
	var own *Error
	var reply redis.Error
	var network net.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &reply):
		return &Error{Unknown: !ranNot(err) && !begins(err, nothingRan), Err: err}
	case errors.As(err, &network) && network.Timeout() && !errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return &Error{Unknown: sent, Err: err}
}
