package expression

import (
	"errors"
	"fmt"
	"mime"
	"net/netip"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

var errEmptyName = errors.New("the name is empty")

// HeaderName returns an error if no header can have the name (RFC 9110, section 5.6.2).
func HeaderName(name string) error {
	if name == "" {
		return errEmptyName
	}
	if strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) >= 0 {
		return errors.New("is no name of a header")
	}
	return nil
}

// plain returns the key function of one of the plainNames.
func (s *Sources) plain(name string) core.KeyFunc {
	switch name {
	case "method":
		return keyfuncs.Method()
	case "path":
		return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Path()...), nil }
	case "route":
		return keyfuncs.Route()
	case "ip":
		return s.IP
	case "user":
		return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, s.User(r)...), nil }
	}
	return nil
}

// readers read a named value of a request: for keys and costs, and for match.when.
type readers struct{ usual, certain core.KeyFunc }

// named returns the key function of one of the namedNames.
func named(kind, name string) (core.KeyFunc, error) {
	if name == "" {
		return nil, errEmptyName
	}
	switch kind {
	case "header":
		if err := HeaderName(name); err != nil {
			return nil, err
		}
		return keyfuncs.Header(name), nil
	case "query":
		return keyfuncs.Query(name), nil
	case "param":
		return keyfuncs.PathValue(name), nil
	case "cookie":
		return keyfuncs.Cookie(name), nil
	case "form":
		return byType(mayBeForm, strict(name), keyfuncs.PostField(name, keyfuncs.FormsOnly())), nil
	case "json":
		path := strings.Split(name, ".")
		for _, part := range path {
			if part == "" {
				return nil, errors.New(`want names with dots between, as in json["user.name"]`)
			}
		}
		key := strictJSON(path)
		return byType(isJSON, key, notJSON(name, key)), nil
	}
	return nil, fmt.Errorf("%s is not known", kind)
}

// certain returns a key function for match.when, where an empty value may switch a limit off. A
// body of another type than the value's is an error, because a handler may read several types into
// one variable.
func certain(kind, name string, usual core.KeyFunc) core.KeyFunc {
	switch kind {
	case "form":
		return strict(name)
	case "json":
		return byType(isJSON, strictJSON(strings.Split(name, ".")), strict(name))
	}
	return usual
}

func strict(name string) core.KeyFunc {
	return keyfuncs.PostField(name, keyfuncs.FormsOnly(), keyfuncs.Strict())
}

func strictJSON(path []string) core.KeyFunc {
	return keyfuncs.PostField(path[len(path)-1], keyfuncs.JSONPath(path...), keyfuncs.Strict())
}

// notJSON is the key function of a body whose type is not JSON: it has no value. A handler may
// decode JSON without looking at the type, so a body that begins as an object is a bad request. A
// remote procedure call has no body: key, the key function of JSON bodies, denies it.
func notJSON(name string, key core.KeyFunc) core.KeyFunc {
	const most = 64 // of white space
	return func(dst []byte, r core.Request) ([]byte, error) {
		if r.Value(requestlog.NoBodyKey{}) != nil {
			return key(dst, r)
		}
		body, err := r.Body(most)
		if errors.Is(err, core.ErrBodyRead) {
			return dst, fmt.Errorf("json[%q]: %w", name, &core.BadRequestError{Detail: "the body was read by a middleware before the limiter: put the limiter first"})
		}
		if err != nil {
			return dst, err
		}
		text := strings.TrimLeft(strings.TrimPrefix(string(body), "\ufeff"), " \t\r\n")
		if strings.HasPrefix(text, "{") || text == "" && len(body) == most {
			return dst, fmt.Errorf("json[%q]: %w", name, &core.BadRequestError{Detail: "the body is JSON, and its Content-Type says something else"})
		}
		return dst, nil
	}
}

// byType keys by f if the body is of a type, else by other.
func byType(is func(contentType string) bool, f, other core.KeyFunc) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		if types := r.HeaderValues("Content-Type"); len(types) > 0 && is(types[0]) {
			return f(dst, r)
		}
		return other(dst, r)
	}
}

// mayBeForm reports whether a framework may take a body of this type for a form: some compare only
// the beginning of the type.
func mayBeForm(contentType string) bool {
	text := strings.ToLower(strings.TrimSpace(contentType))
	return strings.HasPrefix(text, "application/x-www-form-urlencoded") || strings.HasPrefix(text, "multipart/form-data")
}

func isJSON(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType) // of a type that is none, kind is ""
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// Sources has the values that a request does not have itself.
type Sources struct {
	IP      core.KeyFunc                // the client's address, an IPv6 one cut to a prefix
	Address core.KeyFunc                // the client's whole address
	User    func(r core.Request) string // nil: expressions cannot use user
	Trusted []string                    // the names of headers that a client cannot choose
}

// AddressOf returns the client's whole address; it is not valid if there is none.
func (s *Sources) AddressOf(r core.Request) netip.Addr {
	var buf [64]byte
	text, err := s.Address(buf[:0], r)
	if err != nil {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddr(string(text))
	return a
}
