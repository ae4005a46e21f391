// Package grpclimit limits the calls of gRPC servers and clients. It is a module of its own, so
// that only its users get gRPC. For Connect, use package connectlimit.
//
//	server := grpc.NewServer(grpclimit.PerIP(100, time.Minute)...)
//
// PerIP is the shortest way to start. ServerOptions accepts every core.Checker: a limiter with
// any rules, a login guard or a set of policies. A program that chains interceptors uses
// UnaryServerInterceptor and StreamServerInterceptor. It needs both: a server whose only
// interceptor is for unary calls does not limit its streams.
//
// # What key functions see
//
//	Request.Method          POST
//	Request.Path, Route     the full method, such as /shop.v1.Orders/Place
//	Request.HeaderValues    the metadata; "Host" is the authority
//	Request.Cookie          the cookies in the metadata "cookie", which proxies and gateways pass on
//	Request.RemoteAddr      the address of the connection's peer
//	Request.Value           the values of the context
//	Request.Query           nothing
//	Request.Body            an error: a call has messages, and no body
//
// So keyfuncs.ClientIP, with Behind, limits clients, keyfuncs.Header reads metadata, and
// keyfuncs.Route limits each method by itself. Metadata whose name ends in -bin is decoded. A call
// that the server passes to its UnknownServiceHandler has no Route, because the client makes up the
// method's name. A key function for a field of the request message calls Message.
// keyfuncs.PostField denies calls with InvalidArgument, and the limiter's log has one line about
// it.
//
// # What a denied client gets
//
//	over a limit                       ResourceExhausted, with the details RetryInfo and QuotaFailure
//	a key function: ErrBadRequest      InvalidArgument
//	the store or a key function fails  Unavailable, without details
//
// A hook that returns another status, such as 403, gets the code for it, such as PermissionDenied.
// The header metadata of the response has the rate limit fields of allowed and denied calls, and
// the field retry-after of denied ones.
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
// and the panic goes on.
//
// # Clients
//
// DialOptions limits the calls that a program makes. A call that is denied is not sent, and its
// error is a *DeniedError. If the limiter has a MaxWait, a call waits for its turn.
package grpclimit
