package rpc

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Code is a status code of gRPC, which Connect uses too: google.rpc.Code.
type Code uint32

// The codes.
const (
	OK Code = iota
	Canceled
	Unknown
	InvalidArgument
	DeadlineExceeded
	NotFound
	AlreadyExists
	PermissionDenied
	ResourceExhausted
	FailedPrecondition
	Aborted
	OutOfRange
	Unimplemented
	Internal
	Unavailable
	DataLoss
	Unauthenticated
)

// statuses has the HTTP status of each code, as in the comments of google/rpc/code.proto.
var statuses = [...]int{
	OK:                 http.StatusOK,
	Canceled:           core.StatusCanceled,
	Unknown:            http.StatusInternalServerError,
	InvalidArgument:    http.StatusBadRequest,
	DeadlineExceeded:   http.StatusGatewayTimeout,
	NotFound:           http.StatusNotFound,
	AlreadyExists:      http.StatusConflict,
	PermissionDenied:   http.StatusForbidden,
	ResourceExhausted:  http.StatusTooManyRequests,
	FailedPrecondition: http.StatusBadRequest,
	Aborted:            http.StatusConflict,
	OutOfRange:         http.StatusBadRequest,
	Unimplemented:      http.StatusNotImplemented,
	Internal:           http.StatusInternalServerError,
	Unavailable:        http.StatusServiceUnavailable,
	DataLoss:           http.StatusInternalServerError,
	Unauthenticated:    http.StatusUnauthorized,
}

// Status returns the HTTP status of the code. An unknown code has that of Unknown.
func (c Code) Status() int {
	if int(c) >= len(statuses) {
		c = Unknown
	}
	return statuses[c]
}

// StatusHeader is the name under which Outcome.Header returns the code of a call, as a
// decimal number. It is the name of the trailer in which gRPC sends the code.
const StatusHeader = "Grpc-Status"

// End is what an adapter knows about a call that has ended.
type End struct {
	// Code is the code of the error that the handler returned, or OK.
	Code Code
	// Ended reports whether the context of the call had ended when the handler returned, so
	// that the client has not seen the code. It is also true if the handler returned the
	// error of a context.
	Ended    bool
	Panicked bool
	// Status is the HTTP status if it is not that of the code. 0: it is.
	Status int
	// Header returns the first value of a header of the response. It may be nil.
	Header func(name string) string
}

// Outcome returns the core.Outcome of the call.
func (e End) Outcome() core.Outcome {
	canceled := e.Ended || e.Code == Canceled
	code := e.Code
	switch {
	case e.Panicked:
		code = Internal
	case canceled:
		code = Canceled
	}
	o := core.Outcome{Status: code.Status(), Canceled: canceled, Panicked: e.Panicked}
	if e.Status != 0 && !canceled && !e.Panicked {
		o.Status = e.Status
	}
	header := e.Header
	o.Header = func(name string) string {
		switch {
		case strings.EqualFold(name, StatusHeader):
			return strconv.FormatUint(uint64(code), 10)
		case header == nil:
			return ""
		}
		return header(name)
	}
	return o
}

// CodeOf returns the code of an outcome that End.Outcome has made. Of another outcome, it
// returns OK if the status is below 400, and else Unknown.
func CodeOf(o core.Outcome) Code {
	if o.Header != nil {
		if n, err := strconv.ParseUint(o.Header(StatusHeader), 10, 32); err == nil {
			return Code(n)
		}
	}
	if o.Status != 0 && o.Status < http.StatusBadRequest {
		return OK
	}
	return Unknown
}
