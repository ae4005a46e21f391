package keyfuncs

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"strings"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// DefaultMaxBody is how much of a body PostField reads, in bytes.
const DefaultMaxBody = 64 << 10

// postField is the configuration of a PostField.
type postField struct {
	name       string
	path       []string // in JSON
	flat       string   // a member of the JSON object that counts as the field, too; "" is none
	names      spelling // the name, and the path as a form or a query would have it
	maxBody    int
	refuseLong bool
	require    bool
	strict     bool
	formsOnly  bool
	normalize  []func(string) (string, error)
	said       atomic.Bool // that a middleware has read the body
}

// PostField keys by a field of the request's body: of a form
// (application/x-www-form-urlencoded or multipart/form-data) or of a JSON object
// (application/json and types that end with +json). Strings are used as they
// are, numbers and booleans as their text; 1.0 is 1. The name may be a path such
// as user[name]: in JSON it is then the member name of the object user, or the
// member user[name]. PostField panics if name is empty or an option is invalid.
//
// The limiter must run before any middleware that reads the body or parses the
// form: a request whose body has been read is refused with a
// [core.BadRequestError], and the first one is an error in the log of the limiter
// (see [core.Config]). The handler still gets the whole body. PostField reads at most [MaxBody] bytes, decompresses nothing and writes
// no file.
//
// The key is empty if the body has no such field or the field has no value: the
// body has another type, is malformed, compressed or too long, it is a form that
// begins as a JSON object does, or the value is a file, null, an array or an
// object. All these requests share one quota. A
// handler may find a value in some of them: use [Strict] and [RequireValue] if
// the field says who is logging in.
//
// A request is refused with a [core.BadRequestError] if handlers could read
// different values:
//   - The field is given twice. Names are compared as the most lenient of
//     net/http, Gin, Echo and Fiber reads them: USERNAME, username[] and
//     userna[]me are username; user.name is user[name].
//   - The URL's query has the field too, in any spelling. Many handlers read
//     the form and the query together, and some prefer the query. This holds
//     for every method and also if there is no body.
//   - The field has a malformed escape or an unescaped semicolon.
//   - The body has more than 1,000 fields, or cannot be received.
func PostField(name string, opts ...PostFieldOption) core.KeyFunc {
	mustHave("PostField", "name", name != "")
	f := &postField{name: name, maxBody: DefaultMaxBody}
	for _, opt := range opts {
		mustHave("PostField", "option", opt != nil)
		opt(f)
	}
	f.names = spellingOf(name)
	f.names.deep = f.strict
	if f.path == nil {
		f.path, f.flat = f.names.parts, name
	} else {
		inJSON := spellingOf(strings.Join(f.path, "."))
		inJSON.deep = f.strict
		f.names.other = &inJSON
	}
	return f.key
}

func (f *postField) key(dst []byte, r core.Request) ([]byte, error) {
	value, err := f.value(r)
	if err == nil {
		value, err = f.normalized(value)
	}
	switch {
	case err != nil:
		return dst, refused("field", f.name, err)
	case value == "" && f.require:
		return dst, refused("field", f.name, fault("is missing, or cannot be read"))
	}
	return append(dst, value...), nil
}

// value returns the field's value, "" if there is none.
func (f *postField) value(r core.Request) (string, error) {
	b := f.body(r)
	if query := r.RawQuery(); query != "" && f.names.inQuery(query) {
		return "", faultInQuery
	}
	if b.kind == otherBody {
		if f.strict {
			if body, err := r.Body(1); err != nil {
				return "", f.unread(r, err)
			} else if len(body) > 0 {
				return "", faultUnreadable
			}
		}
		return "", nil // the body is not even read
	}
	body, err := r.Body(f.maxBody + 1)
	switch {
	case err != nil:
		return "", f.unread(r, err)
	case len(body) > f.maxBody && f.refuseLong:
		return "", fault(fmt.Sprintf("cannot be read: the body is longer than %d bytes", f.maxBody))
	case len(body) > f.maxBody:
		return f.lenient("", faultUnreadable)
	case len(body) == 0:
		return "", nil
	}
	if b.kind != jsonBody && startsAsJSON(body) {
		// A handler that decodes JSON without a look at the type, as Gin's
		// ShouldBindJSON does, would read another value than the form's.
		return f.lenient("", faultUnreadable)
	}
	if f.strict && b.mayBeOther(body) {
		return "", faultUnreadable
	}
	switch b.kind {
	case formBody:
		return f.lenient(formValue(body, &f.names))
	case multipartBody:
		return f.lenient(multipartValue(body, b.boundary, &f.names))
	default:
		return f.lenient(jsonValue(body, f.path, f.flat))
	}
}

// unread returns the error for a body that Request.Body could not read.
func (f *postField) unread(r core.Request, err error) error {
	if !errors.Is(err, core.ErrBodyRead) {
		return fmt.Errorf("reading the body: %w", withoutAddress(err))
	}
	if !f.said.Load() && f.said.CompareAndSwap(false, true) {
		requestlog.Of(r).Error("keyfuncs: PostField cannot read the body, because a middleware before the limiter has read it or has parsed the form. "+
			"Such requests are refused with 400. Mount the limiter before that middleware", "field", f.name)
	}
	return errBodyRead
}

var errBodyRead = &core.BadRequestError{Detail: "the body was read by a middleware before the limiter: put the limiter first"}

// lenient drops the error of a body that cannot be read, unless f is strict.
func (f *postField) lenient(value string, err error) (string, error) {
	if isUnreadable(err) && !f.strict {
		return value, nil
	}
	return value, err
}

// withoutAddress takes the client's address out of an error that may be logged.
func withoutAddress(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// The kinds of bodies.
const (
	otherBody = iota // one that is not read
	formBody
	multipartBody
	jsonBody
)

type bodyType struct {
	kind     int
	boundary string
}

// body returns the type of the request's body.
func (f *postField) body(r core.Request) bodyType {
	for _, encoding := range r.HeaderValues("Content-Encoding") {
		if !strings.EqualFold(trimSpace(encoding), "identity") {
			return bodyType{}
		}
	}
	types := r.HeaderValues("Content-Type")
	if len(types) == 0 {
		return bodyType{}
	}
	switch types[0] { // the usual types, without the cost of parsing them
	case "application/x-www-form-urlencoded":
		return bodyType{kind: formBody}
	case "application/json":
		return f.jsonType()
	}
	// The first line, and the type even if its parameters are malformed, as in
	// net/http.
	kind, params, err := mime.ParseMediaType(types[0]) // lower-cases the type
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return bodyType{}
	}
	switch {
	case kind == "application/x-www-form-urlencoded":
		return bodyType{kind: formBody}
	case kind == "multipart/form-data":
		boundary := params["boundary"]
		if raw := rawBoundary(types[0]); raw != "" && raw != boundary {
			return bodyType{} // Fiber would read other parts than net/http
		}
		return bodyType{multipartBody, boundary}
	case strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
		return bodyType{} // Fiber takes application/x-www-form-urlencoded+json for a form
	case kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"):
		return f.jsonType()
	default:
		return bodyType{}
	}
}

func (f *postField) jsonType() bodyType {
	if f.formsOnly {
		return bodyType{}
	}
	return bodyType{kind: jsonBody}
}

// normalized applies the functions of Normalize.
func (f *postField) normalized(value string) (string, error) {
	raw := value
	for _, normalize := range f.normalize {
		var err error
		if value, err = normalize(value); errors.Is(err, core.ErrBadRequest) {
			return "", err
		} else if err != nil {
			return raw, nil //nolint:nilerr // as the comment of Normalize says
		}
	}
	return value, nil
}
