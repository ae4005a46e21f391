// Package keyfuncs has the key functions of rules ([core.KeyFunc]). The key is the client's
// address, the user, a header, a cookie, a query parameter, the method, the route or a field of the
// body. Join and FirstOf combine several of them.
//
//	core.Rule{Name: "ip", Key: keyfuncs.ClientIP(), Limits: ...}
//	core.Rule{Name: "login", Key: keyfuncs.Join(keyfuncs.ClientIP(), keyfuncs.PostField("username")), Limits: ...}
//
// If a request does not have the value, its key is empty. All requests with an empty key share one
// quota, so that no request is unlimited. OrSkip makes a rule apply only to requests that have the
// value. User and UserValue do so by themselves.
//
// There is no key function for the URL's path. Routers serve one resource under many paths (/login,
// /login/, /%6cogin), so a client could choose its counter. Use Route: its key is the pattern that
// the router has matched.
//
// All key functions may be called concurrently.
package keyfuncs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// Func returns a key function that calls f. f returns the key as a string; its errors mean the same
// as those of a [core.KeyFunc]. f may be called concurrently. Func panics if f is nil.
func Func(f func(core.Request) (string, error)) core.KeyFunc {
	mustHave("Func", "f: nil: must be a function that returns the key", f != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		key, err := f(r)
		return append(dst, key...), err
	}
}

// Static returns a key function that returns the same key for every request: all requests share one
// quota.
func Static(key string) core.KeyFunc {
	return func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, key...), nil }
}

// User returns a key function for the user of a request. currentUser returns the user, for instance
// from the context in which the authentication has stored it. If currentUser returns "", nobody is
// logged in, and the rule does not apply: the error is [core.SkipRule]. currentUser may be called
// concurrently. User panics if currentUser is nil.
func User(currentUser func(core.Request) string) core.KeyFunc {
	mustHave("User", "currentUser: nil: must be a function that returns the user", currentUser != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		user := currentUser(r)
		if user == "" {
			return dst, core.SkipRule
		}
		return append(dst, user...), nil
	}
}

// UserValue returns a key function for a value that an earlier middleware has stored for the
// request under key ([core.Request].Value). The value is a fmt.Stringer, or has a string type or an
// integer type.
//
// If no value is stored, or the value is nil or its text is "", the rule does not apply: the error
// is [core.SkipRule]. The number 0 is a key. A value of another type is an error, so that the
// request is denied with 503. UserValue panics if key is nil.
func UserValue(key any) core.KeyFunc {
	mustHave("UserValue", "key: nil: must be the key under which a middleware stores the user", key != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		value := r.Value(key)
		v := reflect.ValueOf(value)
		text := ""
		switch stringer, ok := value.(fmt.Stringer); {
		case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil():
		case ok:
			text = stringer.String()
		case v.Kind() == reflect.String:
			text = v.String()
		case v.CanInt():
			text = strconv.FormatInt(v.Int(), 10)
		case v.CanUint():
			text = strconv.FormatUint(v.Uint(), 10)
		default:
			return dst, fmt.Errorf("keyfuncs: UserValue(%v): the stored value has type %T: store a string, an integer or a fmt.Stringer", key, value)
		}
		if text == "" {
			return dst, core.SkipRule
		}
		return append(dst, text...), nil
	}
}

// Header returns a key function for the value of a request header. The key preserves letter case.
// It is empty if the request has no such header. If the header has two lines, the error wraps
// [core.ErrBadRequest], because the limiter and the handler could read different lines. Header
// panics if name is not the name of a header (a token of RFC 9110, section 5.6.2).
//
// A client can send any header. A rule with this key does not limit a client that changes the
// header with each request, unless the application checks the header.
func Header(name string) core.KeyFunc {
	mustHave("Header", fmt.Sprintf(`name: %q: must be the name of a header, such as "X-Api-Key"`, name), name != "" && tokenLength(name) == len(name))
	return func(dst []byte, r core.Request) ([]byte, error) {
		switch lines := r.HeaderValues(name); len(lines) {
		case 0:
			return dst, nil
		case 1:
			return append(dst, lines[0]...), nil
		default:
			return dst, badRequest("header", name, faultTwice)
		}
	}
}

// Method returns a key function for the request's method. The key preserves letter case, because
// methods are case-sensitive (RFC 9110, section 9.1). A client can make up methods. Use Method only
// on routes that accept a fixed set of methods.
func Method() core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Method()...), nil }
}

// Route returns a key function for the pattern of the matched route. All paths that lead to one
// handler share a quota.
//
// If no route has been matched, the key is empty, and all such requests share one quota. That is
// right if no route exists for the path. It is a mistake if the limiter decides before the router:
// in a middleware around the whole application, in Use of chi's outermost router, in Echo's Pre, in
// Fiber's Use. At the first such request, the log of the limiter (see [core.Config]) gets one line.
//
// Route cannot distinguish a route from the pattern under which another router is mounted. In chi,
// that is "/sub/*" if the limiter is in Use inside r.Route("/sub", ...), and all requests below
// /sub share one quota. Use the limiter in With or in a Group there.
func Route() core.KeyFunc {
	var logged atomic.Bool
	return func(dst []byte, r core.Request) ([]byte, error) {
		route := r.Route()
		if route == "" && logged.CompareAndSwap(false, true) {
			requestlog.Of(r).Error("keyfuncs: Route finds no matched route: all such requests share one limit. " +
				"This is right if no route exists for the request's path. " +
				"If the application has a route for the path, the limiter decides before the router has matched: mount the limiter on the routes, " +
				"with chi's With instead of Use, on Fiber's routes instead of Use, on Echo's Use instead of Pre, on handlers of the http.ServeMux instead of around it")
		}
		return append(dst, route...), nil
	}
}

// PathValue returns a key function for the value of a parameter of the matched route, such as
// tenant in "/tenants/{tenant}/items". The value is what the framework's handlers read. PathValue
// panics if name is "".
//
// If the value is "", the key is empty, and all such requests share one quota. That is so if the
// limiter decides before the router has matched a route, as for [Route], and if the route has no
// parameter of this name. At the first such request, the log of the limiter gets one line.
//
// A client gets a quota for each value that the handler accepts: add a rule for the client's
// address.
func PathValue(name string) core.KeyFunc {
	mustHave("PathValue", `name: "": must be the name of a parameter of the route, such as "id" of "/items/{id}"`, name != "")
	var logged atomic.Bool
	return func(dst []byte, r core.Request) ([]byte, error) {
		value := r.PathValue(name)
		if value == "" && logged.CompareAndSwap(false, true) {
			requestlog.Of(r).Error("keyfuncs: PathValue finds no value: all such requests share one limit. "+
				"Either the limiter decides before the router has matched a route: mount it on the routes, as for keyfuncs.Route. "+
				"Or the route has no parameter of this name; a call of gRPC or Connect has none", "parameter", name)
		}
		return append(dst, value...), nil
	}
}

// OrSkip returns a key function that calls f. If the key of f is empty, the error is
// [core.SkipRule]: the rule applies only to requests that have a key. OrSkip panics if f is nil.
func OrSkip(f core.KeyFunc) core.KeyFunc {
	mustHave("OrSkip", `f: nil: must be a key function, such as keyfuncs.Header("X-Api-Key")`, f != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		from := len(dst)
		dst, err := f(dst, r)
		if err == nil && len(dst) == from {
			err = core.SkipRule
		}
		return dst, err
	}
}

// mustHave panics with the text wrong if ok is false. It is for mistakes in the program, which are
// found when the program starts.
func mustHave(function, wrong string, ok bool) {
	if !ok {
		panic(errors.New("keyfuncs: " + function + ": " + wrong))
	}
}

// Join returns a key function for the keys of several key functions together. Requests share a
// quota only if all their keys are equal. The key contains the length of each part, so that
// different parts never give the same key. If one of the functions returns an error, such as
// [core.SkipRule], Join's key function returns it. To use OrSkip, apply it to the functions and not
// to Join: the key of Join is never empty. [JoinKeys] makes such a key, and [SplitKeys] returns its
// parts. Join panics if fs is empty or one of fs is nil.
func Join(fs ...core.KeyFunc) core.KeyFunc {
	fs = slices.Clone(fs)
	mustHaveAll("Join", fs)
	return func(dst []byte, r core.Request) ([]byte, error) {
		for _, f := range fs {
			from := len(dst)
			var err error
			if dst, err = f(dst, r); err != nil {
				return dst, err
			}
			dst = appendLength(dst, len(dst)-from)
		}
		return dst, nil
	}
}

func mustHaveAll(function string, fs []core.KeyFunc) {
	mustHave(function, "no key functions: write one or more, such as keyfuncs.ClientIP()", len(fs) > 0)
	for _, f := range fs {
		mustHave(function, "a key function is nil: write one such as keyfuncs.ClientIP()", f != nil)
	}
}

// lengthBytes is the number of bytes of a length.
const lengthBytes = 4

// appendLength appends the length of a part. The lengths follow the parts: a reader that begins at
// the end of the key can split it in one way only.
func appendLength(dst []byte, length int) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(length))
}

// JoinKeys returns the key that [Join] makes of these keys, for programs that reset or read the
// counter of such a rule:
//
//	err := limiter.Reset(ctx, core.Hit{Rule: "login", Key: keyfuncs.JoinKeys("192.0.2.1", "alice")})
//
// Each key is written as its key function writes it: [ClientIP] writes an IPv6 address as a prefix,
// such as "2001:db8::/64". JoinKeys may be called concurrently.
func JoinKeys(keys ...string) string {
	size := 0
	for _, key := range keys {
		size += len(key) + lengthBytes
	}
	joined := make([]byte, 0, size)
	for _, key := range keys {
		joined = appendLength(append(joined, key...), len(key))
	}
	return string(joined)
}

// SplitKeys returns the parts of a key of [Join], in the order of Join's key functions, for logs
// and pages that show keys. It returns nil if Join makes no such key. A key of another rule may
// look like one of Join: split only the keys of rules whose key function is Join, and of the rules
// "address-account" and "device" of a login guard. SplitKeys may be called concurrently.
func SplitKeys(joined string) (keys []string) {
	for rest := joined; rest != ""; {
		end := len(rest) - lengthBytes
		if end < 0 {
			return nil
		}
		length := binary.BigEndian.Uint32([]byte(rest[end:]))
		if uint64(length) > uint64(end) {
			return nil
		}
		from := end - int(length)
		keys = append(keys, rest[from:end])
		rest = rest[:from]
	}
	slices.Reverse(keys)
	return keys
}

// FirstOf returns a key function for the first key of several key functions that is not empty. The
// same key of two functions has two counters: the user "192.0.2.1" and the address 192.0.2.1 do not
// share a quota.
//
//	keyfuncs.FirstOf(keyfuncs.User(currentUser), keyfuncs.ClientIP())
//
// If all keys are empty, the key is empty. If all functions return [core.SkipRule], the error is
// SkipRule. If a function returns any other error, FirstOf's key function returns it and does not
// call the functions after it. FirstOf panics if fs is empty or one of fs is nil.
func FirstOf(fs ...core.KeyFunc) core.KeyFunc {
	fs = slices.Clone(fs)
	mustHaveAll("FirstOf", fs)
	return func(dst []byte, r core.Request) ([]byte, error) {
		skipped := 0
		for i, f := range fs {
			key := append(strconv.AppendInt(dst, int64(i+1), 10), ':')
			from := len(key)
			key, err := f(key, r)
			switch {
			case errors.Is(err, core.SkipRule):
				skipped++
			case err != nil || len(key) > from:
				return key, err
			}
		}
		if skipped == len(fs) {
			return dst, core.SkipRule
		}
		return dst, nil
	}
}
