package policy

import (
	"errors"
	"fmt"
	"mime"
	"net/netip"
	"strings"

	"github.com/expr-lang/expr/vm"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// sources are where expressions find what is not written in the request as
// such.
type sources struct {
	ip      core.KeyFunc // the client's address, IPv6 cut to a prefix
	address core.KeyFunc // the whole of it
	user    func(r core.Request) string
}

// plain returns the key function of one of the plainNames.
func (s *sources) plain(name string) core.KeyFunc {
	switch name {
	case "method":
		return keyfuncs.Method()
	case "path":
		return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Path()...), nil }
	case "route":
		return keyfuncs.Route()
	case "ip":
		return s.ip
	case "user":
		return func(dst []byte, r core.Request) ([]byte, error) { return append(dst, s.user(r)...), nil }
	}
	return nil
}

// readers read a named value of a request: for keys and costs, and for match.when.
type readers struct{ usual, certain core.KeyFunc }

// named returns the key function of one of the namedNames.
func named(kind, name string) (core.KeyFunc, error) {
	if name == "" {
		return nil, errors.New("the name is empty")
	}
	switch kind {
	case "header":
		if strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) >= 0 {
			return nil, errors.New("is no name of a header")
		}
		return keyfuncs.Header(name), nil
	case "query":
		return keyfuncs.Query(name), nil
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
		return byType(isJSON, strictJSON(path), notJSON(name)), nil
	}
	return nil, fmt.Errorf("%s is not known", kind)
}

// certain returns a key function for match.when, where an empty value may keep a
// limit away: a body of another type than the value's is an error, because a
// handler may read several types into one variable.
func certain(kind, name string) core.KeyFunc {
	switch kind {
	case "form":
		return strict(name)
	case "json":
		return byType(isJSON, strictJSON(strings.Split(name, ".")), strict(name))
	}
	f, _ := named(kind, name) // it has been made before
	return f
}

func strict(name string) core.KeyFunc {
	return keyfuncs.PostField(name, keyfuncs.FormsOnly(), keyfuncs.Strict())
}

func strictJSON(path []string) core.KeyFunc {
	return keyfuncs.PostField(path[len(path)-1], keyfuncs.JSONPath(path...), keyfuncs.Strict())
}

// notJSON is for a body whose type is not JSON: there is no value. But a handler
// that decodes JSON need not look at the type: a body that begins as an object
// is refused.
func notJSON(name string) core.KeyFunc {
	const most = 64 // of white space
	return func(dst []byte, r core.Request) ([]byte, error) {
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
		types := r.HeaderValues("Content-Type")
		if len(types) == 0 {
			return other(dst, r)
		}
		if !is(types[0]) {
			return other(dst, r)
		}
		return f(dst, r)
	}
}

// mayBeForm reports whether a framework may take a body of this type for a form:
// some look only at how the type begins.
func mayBeForm(contentType string) bool {
	text := strings.ToLower(strings.TrimSpace(contentType))
	return strings.HasPrefix(text, "application/x-www-form-urlencoded") || strings.HasPrefix(text, "multipart/form-data")
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// scope is what an expression sees while it is worked out. The names of its
// fields end with a space, so that only the rewriter can write them.
type scope struct {
	Method func() string          `expr:"method "`
	Path   func() string          `expr:"path "`
	Route  func() string          `expr:"route "`
	IP     func() string          `expr:"ip "`
	User   func() string          `expr:"user "`
	Header func(string) string    `expr:"header "`
	Query  func(string) string    `expr:"query "`
	Cookie func(string) string    `expr:"cookie "`
	Form   func(string) string    `expr:"form "`
	JSON   func(string) string    `expr:"json "`
	Inside func(int) bool         `expr:"inside "`
	CIDR   func(string, int) bool `expr:"cidr "`

	machine    vm.VM
	request    core.Request
	expression *expression
	certain    bool  // it decides whether a policy is for the request
	input      int   // bytes that have been read
	err        error // of the first value that could not be read
}

func newScope() *scope {
	s := new(scope)
	plain := func(name string) func() string {
		return func() string { return s.text(name, "", s.expression.sources.plain(name)) }
	}
	named := func(kind string) func(string) string {
		return func(name string) string {
			v := s.expression.fields[accessed{kind, name}]
			if s.certain {
				return s.text(kind, name, v.certain)
			}
			return s.text(kind, name, v.usual)
		}
	}
	s.Method, s.Path, s.Route, s.IP, s.User = plain("method"), plain("path"), plain("route"), plain("ip"), plain("user")
	s.Header, s.Query, s.Cookie, s.Form, s.JSON = named("header"), named("query"), named("cookie"), named("form"), named("json")
	s.Inside = func(prefixes int) bool {
		return contain(s.expression.prefixes[prefixes], s.expression.sources.addressOf(s.request))
	}
	s.CIDR = func(address string, prefixes int) bool {
		a, err := netip.ParseAddr(address)
		return err == nil && contain(s.expression.prefixes[prefixes], a.Unmap().WithZone(""))
	}
	return s
}

// text reads a value of the request, as long as the expression may read so much.
func (s *scope) text(kind, name string, f core.KeyFunc) string {
	if s.err != nil {
		return ""
	}
	var buf [64]byte
	text, err := f(buf[:0], s.request)
	if s.input += len(text); err == nil && s.input > s.expression.mostInput() {
		if name != "" {
			kind = fmt.Sprintf("%s[%q]", kind, name)
		}
		err = fmt.Errorf("%w: %s has %d bytes: the expression %q reads at most %d of a request", core.ErrBadRequest, kind, len(text), shorten(s.expression.text), s.expression.mostInput())
	}
	if err != nil {
		s.err = err
		return ""
	}
	return string(text)
}

func (s *scope) release() {
	s.request, s.expression, s.certain, s.err, s.input = nil, nil, false, nil, 0
	evaluators.Put(s)
}

func contain(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// parsePrefix reads a prefix, or an address that stands for itself.
func parsePrefix(text string) (netip.Prefix, error) {
	want := fmt.Errorf("%q: want an address or a prefix such as 10.0.0.0/8", shorten(text))
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, want
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, want
	}
	if p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("%q: has bits behind its length: want %v", shorten(text), p.Masked())
	}
	return p, nil
}
