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

// Func makes a key function of one that returns the key as a string.
func Func(f func(core.Request) (string, error)) core.KeyFunc {
	mustHave("Func", "function", f != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		key, err := f(r)
		return append(dst, key...), err
	}
}

// Static gives every request the same key: one quota for all.
func Static(key string) core.KeyFunc {
	return func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, key...), nil }
}

// User keys by the user that currentUser finds, for instance in the request's
// context, where the authentication has put it. "" means that nobody is logged
// in: the rule does not apply then ([core.SkipRule]).
func User(currentUser func(core.Request) string) core.KeyFunc {
	mustHave("User", "function", currentUser != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		user := currentUser(r)
		if user == "" {
			return dst, core.SkipRule
		}
		return append(dst, user...), nil
	}
}

// UserValue keys by a value that an earlier middleware has stored for the
// request ([core.Request].Value): a fmt.Stringer, or of any string or integer
// type. The rule does not apply where there is none, or it is nil or "". (A
// number is a key whatever it is, 0 as well.) A value of another type is an
// error.
func UserValue(key any) core.KeyFunc {
	mustHave("UserValue", "key", key != nil)
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
			return dst, fmt.Errorf("keyfuncs: UserValue(%v): a %T cannot be a key", key, value)
		}
		if text == "" {
			return dst, core.SkipRule
		}
		return append(dst, text...), nil
	}
}

// Header keys by a request header, letter case preserved. Without the header
// the key is empty. A header that is given twice is [core.ErrBadRequest]: the
// limiter and the handler could read different lines. A client can send any
// header: a rule like this tells clients apart, and does not stop a client that
// changes the header.
//
// It panics if name is empty.
func Header(name string) core.KeyFunc {
	mustHave("Header", "name", name != "")
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

// Method keys by the request's method as the client wrote it: methods are
// case-sensitive (RFC 9110, section 9.1). A client can make up methods: use it
// only where the router has fixed which there are.
func Method() core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Method()...), nil }
}

// Route keys by the pattern of the route that the router has matched, so that
// all paths that lead to one handler share a quota.
//
// If no route has been matched, the key is empty: all such requests share one
// quota. That is right for paths that no route is for. It is a mistake if the
// limiter decides before the router: in a middleware around the whole
// application, in chi's Use, in Echo's Pre, in Fiber's Use. The first such
// request is an error in the log of the limiter (see [core.Config]), once for
// each key function. A pattern that only says where an application is mounted,
// such as "/" of an http.ServeMux around another router, cannot be told from a
// route.
func Route() core.KeyFunc {
	var said atomic.Bool
	return func(dst []byte, r core.Request) ([]byte, error) {
		route := r.Route()
		if route == "" && !said.Load() && said.CompareAndSwap(false, true) {
			requestlog.Of(r).Error("keyfuncs: Route finds no matched route: all such requests share one limit. " +
				"This is right if no route is for the request's path. " +
				"If the application has a route for the path, the limiter decides before the router has matched: mount the limiter on the routes, " +
				"with chi's With instead of Use, on Fiber's routes instead of Use, on Echo's Use instead of Pre, on handlers of the http.ServeMux instead of around it")
		}
		return append(dst, route...), nil
	}
}

// Join keys by several key functions together: only requests that agree in all
// of them share a quota. The parts are joined with their lengths, so that no
// two different tuples make the same key. If one of the functions returns an
// error, such as [core.SkipRule], Join returns it. Put an OrSkip inside of Join,
// because the key of Join is never empty. Join panics without a function, and if
// one is nil.
func Join(fs ...core.KeyFunc) core.KeyFunc {
	fs = slices.Clone(fs)
	mustHave("Join", "key function", len(fs) > 0)
	for _, f := range fs {
		mustHave("Join", "key function", f != nil)
	}
	return func(dst []byte, r core.Request) ([]byte, error) {
		for _, f := range fs {
			from := len(dst)
			var err error
			if dst, err = f(dst, r); err != nil {
				return dst, err
			}
			// Read from the end, the lengths tell where each part begins: the
			// key can be taken apart in one way only.
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(dst)-from))
		}
		return dst, nil
	}
}

// FirstOf keys by the first of several key functions that finds something: a
// key that is not empty. Keys of different functions are kept apart: the user
// "192.0.2.1" and the address 192.0.2.1 have separate counters.
//
//	keyfuncs.FirstOf(keyfuncs.User(currentUser), keyfuncs.ClientIP())
//
// If none finds anything, the key is empty; it is [core.SkipRule] if all of them
// return SkipRule. Any other error of a function is FirstOf's, and the functions
// after it are not asked. FirstOf panics if it is given no function or a nil one.
func FirstOf(fs ...core.KeyFunc) core.KeyFunc {
	fs = slices.Clone(fs)
	mustHave("FirstOf", "key function", len(fs) > 0)
	for _, f := range fs {
		mustHave("FirstOf", "key function", f != nil)
	}
	return func(dst []byte, r core.Request) ([]byte, error) {
		start, skipped := len(dst), 0
		for i, f := range fs {
			dst = append(strconv.AppendInt(dst[:start], int64(i+1), 10), ':')
			from := len(dst)
			var err error
			dst, err = f(dst, r)
			switch {
			case errors.Is(err, core.SkipRule):
				skipped++
			case err != nil || len(dst) > from:
				return dst, err
			}
		}
		if skipped == len(fs) {
			return dst[:start], core.SkipRule
		}
		return dst[:start], nil
	}
}

// OrSkip makes a rule apply only to requests for which f finds something: the
// empty key becomes [core.SkipRule].
func OrSkip(f core.KeyFunc) core.KeyFunc {
	mustHave("OrSkip", "key function", f != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		from := len(dst)
		dst, err := f(dst, r)
		if err == nil && len(dst) == from {
			err = core.SkipRule
		}
		return dst, err
	}
}

// mustHave panics where a key function is made without what it cannot do
// without: a mistake in the program, found when it starts.
func mustHave(function, what string, ok bool) {
	if !ok {
		panic(errors.New("keyfuncs: " + function + ": the " + what + " is missing"))
	}
}
