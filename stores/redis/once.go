package redisstore

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// once is an argument of a command that lets itself be written to a connection
// once. That is what keeps a take from being charged twice: go-redis repeats a
// command whose reply was lost (Options.MaxRetries, ClusterOptions.MaxRedirects,
// RingOptions.MaxRetries), and has no way, in the oldest versions that this
// package supports, to exempt one. To repeat a command it has to write it again, with
// this argument, which then is an error. It lets itself be written again only
// where the reply to the first time proves that nothing ran.
//
// On the wire it is a number that the script sends back, so that a reply to
// another command is noticed.
type once struct {
	nonce uint64
	cmd   *redis.Cmd
	state atomic.Int32
	first error // what had become of the first time when it was refused a second
}

const (
	unsent = iota
	written
	withdrawn // must not be sent any more
)

var (
	errRepeated  = errors.New("the reply was lost, and the command may have run: it is not repeated")
	errWithdrawn = errors.New("the deadline has passed before the command was sent")
)

// arm makes it a part of cmd.
func (o *once) arm(cmd *redis.Cmd) { o.cmd, o.first = cmd, nil }

// ranNot lets it be written again: what was sent is known not to have run.
func (o *once) ranNot() { o.state.CompareAndSwap(written, unsent) }

// cause returns what is the matter where err is only that it was not to be
// written a second time.
func (o *once) cause(err error) error {
	if o.first != nil && errors.Is(err, errRepeated) {
		return o.first
	}
	return err
}

// MarshalBinary is called by go-redis each time that it writes the command.
func (o *once) MarshalBinary() ([]byte, error) {
	switch {
	case o.state.CompareAndSwap(unsent, written):
	case o.state.Load() == withdrawn:
		return nil, errWithdrawn
	case !ranNot(o.cmd.Err()):
		if o.first == nil {
			o.first = o.cmd.Err()
		}
		return nil, errRepeated
	default:
		// The proof is used up: it says nothing about this second time.
		o.cmd.SetErr(nil)
	}
	return o.encode(), nil
}

func (o *once) encode() []byte { return binary.LittleEndian.AppendUint64(nil, o.nonce) }

// exempt is a command that go-redis does not repeat, from version 9.19 on. It
// takes the part of once for clients that write an argument to learn its
// length, as the automatic pipelining of version 9.23 does.
type exempt struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (exempt) NoRetry() bool { return true }

// knowsExempt says that this version of go-redis asks commands for NoRetry.
func knowsExempt() bool {
	_, knows := any(new(redis.Cmd)).(interface{ NoRetry() bool })
	return knows
}

// String is what tracing hooks print.
func (o *once) String() string { return "once" }

// sent says that the command may have run.
func (o *once) sent() bool { return o.state.Load() == written }

// withdraw keeps the command from being sent, and tells whether it has not been.
func (o *once) withdraw() bool { return o.state.CompareAndSwap(unsent, withdrawn) }

// The replies of a server that has not run the command, and may soon, or
// another one may.
var notNow = []string{"MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN ", "LOADING ", "READONLY ", "MASTERDOWN "}

// ranNot says that err is a reply which proves that the command did not run,
// and may be sent again.
func ranNot(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, prefix := range notNow {
		if strings.HasPrefix(reply.Error(), prefix) {
			return true
		}
	}
	return false
}
