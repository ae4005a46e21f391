package redisstore

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
)

// nonce is an argument of each command: a number that the script sends back, so
// that a reply to another command is noticed. go-redis serialises it when it
// writes the command to a connection. Until then the command can be withdrawn.
type nonce struct {
	number uint64
	state  atomic.Int32
}

const (
	unsent    = iota
	sent      // the command may have run
	withdrawn // the command must not be sent any more
)

var errWithdrawn = errors.New("the deadline passed before the command was sent")

// MarshalBinary implements encoding.BinaryMarshaler. A client that follows a
// redirect (MOVED, ASK) writes the command, and calls it, more than once.
func (n *nonce) MarshalBinary() ([]byte, error) {
	if !n.state.CompareAndSwap(unsent, sent) && n.state.Load() == withdrawn {
		return nil, errWithdrawn
	}
	return binary.LittleEndian.AppendUint64(nil, n.number), nil
}

// String is what tracing hooks print.
func (n *nonce) String() string { return "nonce" }

// sent reports whether the command may have run.
func (n *nonce) sent() bool { return n.state.Load() == sent }

// ranNot notes a reply which proves that the command has not run.
func (n *nonce) ranNot() { n.state.CompareAndSwap(sent, unsent) }

// withdraw keeps the command from being sent. It returns false if the command
// may have been sent already.
func (n *nonce) withdraw() bool { return n.state.CompareAndSwap(unsent, withdrawn) }
