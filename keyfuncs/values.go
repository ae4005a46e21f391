package keyfuncs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/floodgate-go/floodgate/core"
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
// request ([core.Request].Value): a string, an integer or a fmt.Stringer. The
// rule does not apply where there is none or it is empty. A value of another
// type is an error.
func UserValue(key any) core.KeyFunc {
	mustHave("UserValue", "key", key != nil)
	return func(dst []byte, r core.Request) ([]byte, error) {
		before := len(dst)
		switch v := r.Value(key).(type) {
		case nil:
		case string:
			dst = append(dst, v...)
		case fmt.Stringer:
			dst = append(dst, v.String()...)
		case int:
			dst = strconv.AppendInt(dst, int64(v), 10)
		case int32:
			dst = strconv.AppendInt(dst, int64(v), 10)
		case int64:
			dst = strconv.AppendInt(dst, v, 10)
		case uint:
			dst = strconv.AppendUint(dst, uint64(v), 10)
		case uint32:
			dst = strconv.AppendUint(dst, uint64(v), 10)
		case uint64:
			dst = strconv.AppendUint(dst, v, 10)
		default:
			return dst, fmt.Errorf("keyfuncs: UserValue(%v): a %T cannot be a key", key, v)
		}
		if len(dst) == before {
			return dst, core.SkipRule
		}
		return dst, nil
	}
}

// Header keys by a request header, letter case preserved; several lines of the
// name count as what they are, not as one. Without the header the key is
// empty. A client can write what it likes in a header: a rule like this one
// tells clients apart, and does not stop one that changes it.
//
// As an option of [ClientIP], Header names the header in which the trusted
// proxies write the client's address.
//
// It panics where name is empty.
func Header(name string) func(dst []byte, r core.Request) ([]byte, error) {
	mustHave("Header", "name", name != "")
	// The type of the result has no name, so that it is assignable to
	// core.KeyFunc and to ClientIPOption alike.
	return func(dst []byte, r core.Request) ([]byte, error) {
		if c, ok := r.(*clientIP); ok {
			return dst, c.useHeader(name)
		}
		lines := r.HeaderValues(name)
		if len(lines) == 1 {
			return append(dst, lines[0]...), nil
		}
		for _, line := range lines {
			dst = appendPart(dst, line)
		}
		return dst, nil
	}
}

// Cookie keys by the first cookie of that name, the empty key without one. It
// panics where name is empty.
func Cookie(name string) core.KeyFunc {
	mustHave("Cookie", "name", name != "")
	return func(dst []byte, r core.Request) ([]byte, error) {
		v, _ := r.Cookie(name)
		return append(dst, v...), nil
	}
}

// Query keys by the first value of a parameter of the URL's query, the empty
// key without one. It panics where name is empty.
func Query(name string) core.KeyFunc {
	mustHave("Query", "name", name != "")
	return func(dst []byte, r core.Request) ([]byte, error) {
		v, _ := r.Query(name)
		return append(dst, v...), nil
	}
}

// Method keys by the request's method as the client wrote it: methods are
// case-sensitive (RFC 9110, section 9.1).
func Method() core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Method()...), nil }
}

// Route keys by the pattern of the route that the router has matched, so that
// all paths that lead to one handler share a quota. Where none has been
// matched, as in a middleware around the router or for an unknown path, the
// key is empty.
func Route() core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Route()...), nil }
}

// Join keys by several key functions together: only requests that agree in all
// of them share a quota. The parts are joined with their lengths, so that no
// two different tuples make the same key. Where one of the functions gives an
// error, such as [core.SkipRule], that is Join's. It panics where it is given
// none, or a nil one.
func Join(fs ...core.KeyFunc) core.KeyFunc {
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
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(dst)-from))
		}
		return dst, nil
	}
}

// appendPart appends a part of a joined key. Read from the end, the length
// tells where each part begins: the joined key can be taken apart in one way
// only.
func appendPart(dst []byte, part string) []byte {
	dst = append(dst, part...)
	return binary.BigEndian.AppendUint32(dst, uint32(len(part)))
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
