// Package connectlimit limits the calls of servers and clients of Connect (connectrpc.com/connect):
// calls of the protocols Connect, also with GET, gRPC and gRPC-Web. It is a module of its own, so
// that only its users get Connect. For grpc-go, use package grpclimit.
//
//	path, handler := ordersconnect.NewOrdersHandler(orders,
//		connect.WithInterceptors(connectlimit.PerIP(100, time.Minute)))
//
// PerIP is the shortest way to start. Interceptor accepts every core.Checker: a limiter with any
// rules, a login guard or a set of policies. Connect has received and decoded the message of a
// unary call before an interceptor runs. A call whose message cannot be decoded is never
// counted. To deny a client earlier, put package httplimit around the handler. Clients of Connect
// read its response as a code without details.
//
// # What key functions see
//
//	Request.Method          POST, or GET for a call that the client has sent with GET
//	Request.Path, Route     the procedure, such as /shop.v1.Orders/Place
//	Request.HeaderValues    the header; "Host" is the host that the client has called
//	Request.Cookie          the cookies
//	Request.RemoteAddr      the address of the connection's peer
//	Request.Value           the values of the context
//	Request.Query           the query of a GET
//	Request.Body            an error: a call has messages, and no body
//
// So keyfuncs.ClientIP, with Behind, limits clients, keyfuncs.Header reads the header, and
// keyfuncs.Route limits each procedure by itself. A header whose name ends in -bin is decoded. A key
// function for a field of the request message calls Message. keyfuncs.PostField denies calls with
// InvalidArgument, and the limiter's log has one line about it.
//
// # What a denied client gets
//
//	over a limit                       CodeResourceExhausted, with the details RetryInfo and QuotaFailure
//	a key function: ErrBadRequest      CodeInvalidArgument
//	the store or a key function fails  CodeUnavailable, without details
//
// A hook that returns another status, such as 403, gets the code for it, such as PermissionDenied.
// The header of the response has the rate limit fields of allowed and denied calls, and the field
// Retry-After of denied ones.
//
// # Outcomes
//
// Rule.Counts and Rule.Clears get the HTTP status for the code with which a call ended:
//
//	OK                                               200
//	InvalidArgument, FailedPrecondition, OutOfRange  400
//	Unauthenticated                                  401
//	PermissionDenied                                 403
//	NotFound                                         404
//	AlreadyExists, Aborted                           409
//	ResourceExhausted                                429
//	Canceled                                         499, and Outcome.Canceled
//	Unknown, Internal, DataLoss                      500
//	Unimplemented                                    501
//	Unavailable                                      503
//	DeadlineExceeded                                 504
//
// Code returns the code itself. If the context of a call had ended when the handler returned, the
// client has not seen the code: the outcome is that of Canceled. After a panic, the status is 500,
// and the panic goes on. A connect.NewNotModifiedError is the status 304.
//
// # Clients
//
// Interceptor on a client limits the calls that a program makes. A call that is denied is not
// sent, and its error is a *DeniedError. If the limiter has a MaxWait, a call waits for its turn.
package connectlimit
