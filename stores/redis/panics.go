package redisstore

import (
	"errors"
	"fmt"
	"runtime/debug"
)

var errPanic = errors.New("the client panicked")

// recoverPanic makes an error of a panic of the client, such as that of a tracing hook.
// A command with the decisions of many callers runs on a goroutine of the store's own, on
// which a panic would end the process: no caller, and no server, could recover it.
func (s *Store) recoverPanic(err *error) {
	value := recover()
	if value == nil {
		return
	}
	*err = fmt.Errorf("%w: %v", errPanic, value)
	if more, due := s.panics.due(); due {
		s.log().Error("redis: the client panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()), "more", more)
	}
}
