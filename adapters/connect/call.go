package connectlimit

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/floodgate-go/floodgate/adapters/internal/adapter"
	"github.com/floodgate-go/floodgate/adapters/internal/rpc"
	"github.com/floodgate-go/floodgate/core"
)

// callKey is the key of the last *rpc.Call in the context of a server's call.
type callKey struct{}

func callOf(ctx context.Context) *rpc.Call {
	call, _ := ctx.Value(callKey{}).(*rpc.Call)
	return call
}

// DecisionFrom returns the decision with which a limiter has allowed the call that ctx belongs
// to: of several, the innermost, which decided last. The bool is false if no limiter of this
// package has decided on the call. ctx is the context that the handler got, or one made from it.
func DecisionFrom(ctx context.Context) (core.Decision, bool) { return callOf(ctx).Last() }

// SetCost sets the real cost of the call, in hits, when it is known: the rows read, or the bytes
// sent. After the handler has returned, the limiters charge or refund the difference. SetCost
// returns false if that concerns no rule: see [core.Decision.SetCost].
//
// The last call counts. SetCost may be called concurrently. ctx is the context that the
// handler got, or one made from it.
func SetCost(ctx context.Context, cost int64) bool { return callOf(ctx).SetCost(cost) }

// Code returns the code with which a call ended, for [core.Rule].Counts and Clears. It is 0 for a
// call that succeeded, connect.CodeCanceled if the client has not seen the code, and
// connect.CodeInternal after a panic. Of an outcome that is not one of a call, it is 0 if the
// status is below 400, and else connect.CodeUnknown.
func Code(o core.Outcome) connect.Code { return connect.Code(rpc.CodeOf(o)) }

// endOf returns how a call has ended, after err. ctx is the context of the call.
func endOf(ctx context.Context, err error, panicked bool, header http.Header) rpc.End {
	end := rpc.End{Ended: ctx.Err() != nil, Panicked: panicked, Header: header.Get}
	var coded *connect.Error
	switch {
	case err == nil:
	case connect.IsNotModifiedError(err):
		end.Status = http.StatusNotModified
	case errors.As(err, &coded):
		end.Code = rpc.Code(coded.Code())
	case adapter.IsContextError(err):
		end.Code = rpc.Canceled
	default:
		end.Code = rpc.Unknown
	}
	return end
}
