package keyfuncs

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// Func returns a key function that calls f. f returns the key as a string; its errors
// mean the same as those of a [core.KeyFunc]. f may be called concurrently. Func panics
// if f is nil.
func Func(f func(core.Request) (string, error)) core.KeyFunc {
	mustHave("Func", "f: nil: must be a function that returns the key", f != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		key, err := f(r)
		return append(dst, key...), err
	}
}

// Static returns a key function that returns the same key for every request: all
// requests share one quota.
func Static(key string) core.KeyFunc {
	return func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, key...), nil }
}

// User returns a key function for the user of a request. currentUser returns the user,
// for instance from the context in which the authentication has stored it. If
// currentUser returns "", nobody is logged in, and the rule does not apply: the error is
// [core.SkipRule]. currentUser may be called concurrently. User panics if currentUser is
// nil.
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

// UserValue returns a key function for a value that an earlier middleware has stored
// for the request under key ([core.Request].Value). The value is a fmt.Stringer, or has a
// string type or an integer type.
//
// If no value is stored, or the value is nil or its text is "", the rule does not apply:
// the error is [core.SkipRule]. The number 0 is a key. A value of another type is an
// error, so that the request is denied with 503. UserValue panics if key is nil.
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

// Header returns a key function for the value of a request header. The key preserves
// letter case. It is empty if the request has no such header. If the header has two
// lines, the error wraps [core.ErrBadRequest], because the limiter and the handler could
// read different lines. Header panics if name is not the name of a header (a token of RFC
// 9110, section 5.6.2).
//
// A client can send any header. A rule with this key does not limit a client that changes
// the header with each request, unless the application checks the header.
func Header(name string) core.KeyFunc {
	mustHave("Header", fmt.Sprintf(`name: %q: must be the name of a header, such as "X-Api-Key"`, name), name != "" && tokenLength(name) == len(name))
	return func(dst []byte, r core.Request) ([]byte, error) {
		switch lines := r.HeaderValues(name); len(lines) {
		case 0:
			return dst, nil
		case 1:
			return append(dst, lines[0]...), nil
		default:
			return dst, refused("header", name, faultTwice)
		}
	}
}

// Method returns a key function for the request's method. The key preserves letter case,
// because methods are case-sensitive (RFC 9110, section 9.1). A client can make up
// methods. Use Method only on routes that accept a fixed set of methods.
func Method() core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Method()...), nil }
}

// Route returns a key function for the pattern of the matched route. All paths that lead
// to one handler share a quota.
//
// If no route has been matched, the key is empty, and all such requests share one quota.
// That is right if no route exists for the path. It is a mistake if the limiter decides
// before the router: in a middleware around the whole application, in Use of chi's
// outermost router, in Echo's Pre, in Fiber's Use. At the first such request, the key
// function writes one line with level ERROR to the log of the limiter (see [core.Config]).
//
// Route cannot distinguish a route from the pattern under which another router is
// mounted, such as the "/" of an http.ServeMux around it. In chi, that is the pattern
// "/sub/*" if the limiter is in Use inside r.Route("/sub", ...): all requests below /sub
// share one quota, and nothing is logged. Use the limiter in With or in a Group there.
// Before chi v5.3.0, the pattern of a route inside r.Route lacks the "/sub".
func Route() core.KeyFunc {
	var said atomic.Bool
	return func(dst []byte, r core.Request) ([]byte, error) {
		route := r.Route()
		if route == "" && said.CompareAndSwap(false, true) {
			requestlog.Of(r).Error("keyfuncs: Route finds no matched route: all such requests share one limit. " +
				"This is right if no route exists for the request's path. " +
				"If the application has a route for the path, the limiter decides before the router has matched: mount the limiter on the routes, " +
				"with chi's With instead of Use, on Fiber's routes instead of Use, on Echo's Use instead of Pre, on handlers of the http.ServeMux instead of around it")
		}
		return append(dst, route...), nil
	}
}

// PathValue returns a key function for the value of a parameter of the matched route, such
// as tenant in "/tenants/{tenant}/items". The value is what the framework's handlers read:
// [net/http.Request.PathValue], Param of Gin and Echo, Params of Fiber. PathValue panics if
// name is "".
//
// If the value is "", the key is empty, and all such requests share one quota. That is so if
// the limiter decides before the router has matched a route, as for [Route], and if the
// route has no parameter of this name. At the first such request, the key function writes
// one line with level ERROR to the log of the limiter. A rule for the requests that have the
// parameter is OrSkip(PathValue(name)), which logs the line too.
//
// A client chooses the value. Who can make up values that a handler accepts gets a quota for
// each of them: join the key with another, or add a rule for the client's address.
func PathValue(name string) core.KeyFunc {
	mustHave("PathValue", `name: "": must be the name of a parameter of the route, such as "id" of "/items/{id}"`, name != "")
	var said atomic.Bool
	return func(dst []byte, r core.Request) ([]byte, error) {
		value := r.PathValue(name)
		if value == "" && said.CompareAndSwap(false, true) {
			requestlog.Of(r).Error("keyfuncs: PathValue finds no value: all such requests share one limit. "+
				"Either the limiter decides before the router has matched a route: mount it on the routes, as for keyfuncs.Route. "+
				"Or the route has no parameter of this name; a call of gRPC or Connect has none", "parameter", name)
		}
		return append(dst, value...), nil
	}
}

// OrSkip returns a key function that calls f. If the key of f is empty, the error is
// [core.SkipRule]: the rule applies only to requests that have a key. OrSkip panics if f
// is nil.
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

// mustHave panics with the text wrong if ok is false. It is for mistakes in the program,
// which are found when the program starts.
func mustHave(function, wrong string, ok bool) {
	if !ok {
		panic(errors.New("keyfuncs: " + function + ": " + wrong))
	}
}
