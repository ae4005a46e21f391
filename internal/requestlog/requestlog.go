// Package requestlog gives the key functions of this module the log of the limiter that asks them.
package requestlog

import (
	"errors"
	"log/slog"
)

// Key is the key under which a request that a limiter passes to a key function or a hook has the
// limiter's log, a *slog.Logger.
type Key struct{}

// Of returns the log of the limiter that asks a key function or a hook about r: core.Config.Log,
// with the limiter's name as the attribute "limiter". If no limiter has passed r on, it is
// slog.Default(). It may be called concurrently. The caller makes sure that a client cannot fill
// the log, and logs nothing that a client has sent.
func Of(r interface{ Value(key any) any }) *slog.Logger {
	if log, ok := r.Value(Key{}).(*slog.Logger); ok {
		return log
	}
	return slog.Default()
}

// ErrNoBody is the error of Request.Body of a remote procedure call: a call has messages, and no
// body in which a key function could look for a field.
var ErrNoBody = errors.New("floodgate: a remote procedure call has no body that a key function can read")

// NoBodyKey is the key under which the request of a remote procedure call has ErrNoBody, for key
// functions that leave bodies of some types unread.
type NoBodyKey struct{}
