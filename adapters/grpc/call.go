package grpclimit

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// Code returns the code with which a call ended, for [core.Rule].Counts and Clears. It is Canceled
// if the client has not seen the code, and Internal after a panic. Of an outcome that is not one
// of a call, it is OK if the status is below 400, and else Unknown.
func Code(o core.Outcome) codes.Code { return codes.Code(rpc.CodeOf(o)) }

// codeOf returns the code that the client gets for an error, as gRPC finds it, and whether
// the error is one of a context.
func codeOf(err error) (code rpc.Code, contextError bool) {
	if s, ok := status.FromError(err); ok {
		return rpc.Code(s.Code()), false
	}
	return rpc.Code(status.FromContextError(err).Code()), adapter.IsContextError(err)
}
