package redisstore

import (
	"errors"
	"fmt"
	"runtime/debug"
)

var errPanic = errors.New("the client panicked")

// recoverPanic turns a panic of the client, such as one in a tracing hook, into an error.
// A command with the decisions of many callers runs on a goroutine of the store. A panic
// there would end the process, because no caller and no server can recover it.
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
