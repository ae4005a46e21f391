package keyfuncs

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
)

// MaxBody is the length of the longest body that [PostField] parses, in bytes.
const MaxBody = 64 << 10

// postField is the configuration of a PostField.
type postField struct {
	name      string
	path      []string // the path of the field in JSON
	flat      string   // a member of the JSON object that is the field too; "": none
	names     spelling // the names of the field in a form and in a query
	require   bool
	strict    bool
	formsOnly bool
	normalize []func(string) (string, error)
	logged    atomic.Bool // unread has written its line
}

// PostField returns a key function for a field of the request's body: a form
// (application/x-www-form-urlencoded or multipart/form-data) or a JSON object (application/json, or
// a type such as application/problem+json). The key is the field's string, or the text of a number
// or a boolean; 1.0 is 1. The name may be a path: in JSON, user[name] is the member name of the
// object user, or the member user[name]. PostField panics if name is empty or an option is invalid.
//
// Mount the limiter before any middleware that reads the body or parses the form. If such a
// middleware runs first, the error is a [core.BadRequestError], and the log of the limiter (see
// [core.Config]) gets one line. Calls of gRPC and Connect have no body: they get the same error and
// another line. The handler still gets the whole body. PostField parses bodies of at most [MaxBody]
// bytes, decompresses nothing and writes no file.
//
// The key is empty if the body has no such field, or if the field has no value:
//   - The body has another type, or is compressed or longer than MaxBody.
//   - The body is malformed JSON, or a multipart form that is malformed before the field.
//   - The body is a form that begins as a JSON object does.
//   - The value is a file, null, an array or an object.
//
// All these requests share one quota. A handler may find a value in some of them: use [Strict] and
// [RequireValue] if the field is the name of the user who logs in.
//
// The error is a [core.BadRequestError] if handlers could read different values:
//   - The field is given twice. Names are compared as the most lenient of net/http, Gin,
//     Echo and Fiber compares them: USERNAME, username[] and userna[]me are username;
//     user.name is user[name].
//   - The URL's query has the field too, in any spelling. Some handlers prefer the query.
//   - The field has a malformed escape or an unescaped semicolon.
//   - The body has more than 1,000 fields, or cannot be received.
func PostField(name string, opts ...PostFieldOption) core.KeyFunc {
	mustHave("PostField", `name: "": must be the name of a field, such as "username"`, name != "")
	f := &postField{name: name}
	for _, opt := range opts {
		mustHave("PostField", "an option is nil: write one such as keyfuncs.Strict(), or none", opt != nil)
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
	case errors.Is(err, faultUnreadable):
		return dst, badRequest("field", f.name, faultBody)
	case err != nil:
		return dst, badRequest("field", f.name, err)
	case value == "" && f.require:
		return dst, badRequest("field", f.name, fault("is missing, or cannot be read"))
	}
	return append(dst, value...), nil
}

// value returns the field's value, or "" if there is none.
func (f *postField) value(r core.Request) (string, error) {
	b := f.body(r)
	if f.names.inQuery(r.RawQuery()) {
		return "", faultInQuery
	}
	if b.kind == otherBody {
		if err, isCall := r.Value(requestlog.NoBodyKey{}).(error); isCall {
			return "", f.unread(r, err)
		}
		if f.strict {
			if body, err := r.Body(1); err != nil {
				return "", f.unread(r, err)
			} else if len(body) > 0 {
				return "", faultUnreadable
			}
		}
		return "", nil // the body is not read
	}
	body, err := r.Body(MaxBody + 1)
	switch {
	case err != nil:
		return "", f.unread(r, err)
	case len(body) > MaxBody:
		return f.lenient("", faultUnreadable)
	case len(body) == 0:
		return "", nil
	}
	if b.kind != jsonBody && startsAsJSON(body) {
		// A handler that decodes JSON and ignores the Content-Type, as Gin's ShouldBindJSON does,
		// would read another value than the form's.
		return f.lenient("", faultUnreadable)
	}
	if f.strict && (b.mayBeOther(body) || b.kind != formBody && f.names.inQuery(string(body))) {
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

// unread returns the error for a body that Request.Body could not read. It logs once that a
// middleware has read the body, or that a call has none.
func (f *postField) unread(r core.Request, err error) error {
	if errors.Is(err, requestlog.ErrNoBody) {
		if f.logged.CompareAndSwap(false, true) {
			requestlog.Of(r).Error("keyfuncs: PostField cannot read a call of gRPC or Connect, which has messages and no body. "+
				"Such calls are denied with InvalidArgument. Use keyfuncs.Func with a function that reads the message: see Message of packages grpclimit and connectlimit", "field", f.name)
		}
		return errNoBody
	}
	if !errors.Is(err, core.ErrBodyRead) {
		return fmt.Errorf("reading the body: %w", withoutAddress(err))
	}
	if f.logged.CompareAndSwap(false, true) {
		requestlog.Of(r).Error("keyfuncs: PostField cannot read the body, because a middleware before the limiter has read it or has parsed the form. "+
			"Such requests are denied with 400. Mount the limiter before that middleware", "field", f.name)
	}
	return errBodyRead
}

var errNoBody = &core.BadRequestError{Detail: "a remote procedure call has no body with fields: use a key function that reads the message"}

var errBodyRead = &core.BadRequestError{Detail: "the body was read by a middleware before the limiter: put the limiter first"}

// lenient removes faultUnreadable (a handler may read what this package cannot) unless f is strict.
func (f *postField) lenient(value string, err error) (string, error) {
	if errors.Is(err, faultUnreadable) && !f.strict {
		return value, nil
	}
	return value, err
}

// withoutAddress removes the client's address from an error that may be logged.
func withoutAddress(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// The kinds of bodies.
const (
	otherBody = iota // a body that is not read
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
		if !strings.EqualFold(encoding, "identity") {
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
	// As in net/http, only the first line counts, and the type counts even if its parameters are
	// malformed.
	kind, params, _ := mime.ParseMediaType(types[0]) // lower-cases the type; "" if it is malformed
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
		return bodyType{} // Fiber reads application/x-www-form-urlencoded+json as a form
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
			return raw, nil //nolint:nilerr // the comment of Normalize promises it
		}
	}
	return value, nil
}

// PostFieldOption is an option of [PostField]: [RequireValue], [Strict], [FormsOnly], [JSONPath] or
// [Normalize].
type PostFieldOption func(*postField)

// RequireValue denies a request if the field has no value, with a [core.BadRequestError]. By
// default, all requests without a value share one quota.
func RequireValue() PostFieldOption {
	return func(f *postField) { f.require = true }
}

// Strict denies a request, with a [core.BadRequestError], if a handler could find another value in
// the body than PostField. By default, the key is the value that PostField finds, or empty. Strict
// denies
//   - a body of another type, such as XML or YAML, or without a Content-Type;
//   - a body that is compressed, malformed or longer than MaxBody;
//   - a value that is a file, an array or an object;
//   - a JSON number with a point or an exponent, or not between -2^53 and 2^53;
//   - a JSON string that is not valid UTF-8;
//   - a form that a decoder of XML, YAML, TOML or MessagePack could read, such as a form
//     with an unescaped line break or brace;
//   - a body of JSON or a multipart form in which a decoder of forms could read the
//     field, such as one with &username= in another value;
//   - a form in which the value of another field is a JSON object with a member of the
//     name, because Gin reads it into a struct.
//
// With Strict, a path that ends with the name is the field too, because Fiber's BodyParser reads
// credentials.username into a field of an embedded struct. If the name is a path such as
// user[name], its last part is the field too, because Gin's ShouldBind reads name into a field of a
// nested struct.
//
// Strict does not deny a body without the field: see [RequireValue]. Do not decode JSON with
// json-iterator behind it, as Gin does if it is built with the tag jsoniter: it takes members with
// other names for the field.
func Strict() PostFieldOption {
	return func(f *postField) { f.strict = true }
}

// FormsOnly makes PostField read forms only. A JSON body is then a body of another type. By
// default, PostField reads both.
func FormsOnly() PostFieldOption {
	return func(f *postField) { f.formsOnly = true }
}

// JSONPath sets the path of the field in a JSON body: the names of the objects, the outermost
// first, and then the name of the field. By default, the name of [PostField] is the path. PostField
// panics if there are no names.
func JSONPath(names ...string) PostFieldOption {
	return func(f *postField) {
		if len(names) == 0 {
			panic(fmt.Errorf("%w: JSONPath: no names: write the names of the objects and of the field, such as \"user\", \"name\"", core.ErrConfig))
		}
		f.path = slices.Clone(names)
	}
}

// Normalize adds a function that maps different spellings of a value to one key, such as one with
// strings.TrimSpace and strings.ToLower. By default, the value is not changed. Several functions
// are applied in order, also to an empty value. If f returns an error that wraps
// [core.ErrBadRequest], the key function returns it. After any other error, the key is the value as
// it was sent. f may be called concurrently. Normalize panics if f is nil.
func Normalize(f func(string) (string, error)) PostFieldOption {
	mustHave("Normalize", "f: nil: must be a function that maps the spellings of a value to one", f != nil)
	return func(p *postField) { p.normalize = append(p.normalize, f) }
}
