package keyfuncs

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// DefaultMaxBody is how much of a body PostField looks at, in bytes.
const DefaultMaxBody = 64 << 10

// postField is the configuration of a PostField.
type postField struct {
	name       string
	path       []string // in JSON
	maxBody    int
	refuseLong bool
	require    bool
	normalize  []func(string) (string, error)
}

// PostFieldOption is an option of [PostField].
type PostFieldOption func(*postField)

// MaxBody sets how many bytes of the body are looked at, 1 to 2^30;
// [DefaultMaxBody] where it is not given. In a longer body the field counts as
// absent, wherever it stands.
func MaxBody(bytes int) PostFieldOption {
	return func(f *postField) {
		if bytes < 1 || bytes > 1<<30 {
			panic(fmt.Errorf("%w: MaxBody: %d: must be from 1 to 2^30", core.ErrConfig, bytes))
		}
		f.maxBody = bytes
	}
}

// RefuseLongBody makes a body above MaxBody a bad request.
func RefuseLongBody() PostFieldOption {
	return func(f *postField) { f.refuseLong = true }
}

// RequireValue makes a request without a value a bad request, rather than one
// that shares a quota with all others like it: for a form whose handler could
// read a value where the key function reads none, from a compressed body for
// instance.
func RequireValue() PostFieldOption {
	return func(f *postField) { f.require = true }
}

// JSONPath says where in a JSON body the field is: the names of the objects
// from the outermost in, then the field's. Without it the field is at the top,
// under its name.
func JSONPath(names ...string) PostFieldOption {
	return func(f *postField) {
		if len(names) == 0 {
			panic(fmt.Errorf("%w: JSONPath: no names", core.ErrConfig))
		}
		f.path = slices.Clone(names)
	}
}

// Normalize adds a function that makes of different spellings of a value one
// key, such as [TrimSpace] and [FoldCase]; several are applied in order. A
// value for which one gives an error is used as it came. It panics where f is
// nil.
func Normalize(f func(string) (string, error)) PostFieldOption {
	mustHave("Normalize", "function", f != nil)
	return func(p *postField) { p.normalize = append(p.normalize, f) }
}

// PostField keys by a field of the request's body: of a form
// (application/x-www-form-urlencoded or multipart/form-data) or of a JSON
// object (application/json and …+json, strings as they are, numbers and
// booleans as their text: 1.0 is 1). The name may be one like user[name]. It
// panics where name is empty or an option cannot be.
//
// The limiter stands before whatever reads the body, such as a middleware that
// parses forms: of a body that has been read all requests have the empty key.
// The body stays whole for the handler. At most [MaxBody] bytes of it are
// looked at; nothing is decompressed or written to a file; the URL's query
// never counts.
//
// The key is empty where there is no such field or no value to it: another
// type of body, a file, null, an object, a body that is malformed, compressed
// or too long. Such requests share one quota. Letter case does not count in
// the field's name, as binders differ in that. A field that stands twice, in
// whatever spelling of case, is [core.ErrBadRequest]: who reads the first and
// who reads the last would not see the same. So are more than 1,000 fields,
// and a body that cannot be read.
//
// A handler may find a value where the key function finds none: in a body with
// something behind the JSON, of another type, compressed or too long. Where
// that matters, as in a login form, use [RequireValue].
func PostField(name string, opts ...PostFieldOption) core.KeyFunc {
	mustHave("PostField", "name", name != "")
	f := &postField{name: name, path: []string{name}, maxBody: DefaultMaxBody}
	for _, opt := range opts {
		mustHave("PostField", "option", opt != nil)
		opt(f)
	}
	return f.key
}

func (f *postField) key(dst []byte, r core.Request) ([]byte, error) {
	value, err := f.value(r)
	if err != nil {
		return dst, err
	}
	value = f.normalized(value)
	if value == "" && f.require {
		return dst, fmt.Errorf("%w: the field is missing, or cannot be read", core.ErrBadRequest)
	}
	return append(dst, value...), nil
}

// withoutAddress takes the client's address out of an error that may be logged.
func withoutAddress(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// value returns the field's value, "" for none.
func (f *postField) value(r core.Request) (string, error) {
	parse := f.parser(r)
	if parse == nil {
		return "", nil // the body is not even read
	}
	body, err := r.Body(f.maxBody + 1)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: reading the body: %w", core.ErrBadRequest, withoutAddress(err))
	case len(body) <= f.maxBody:
		return parse(body)
	case f.refuseLong:
		return "", fmt.Errorf("%w: the body is longer than %d bytes", core.ErrBadRequest, f.maxBody)
	default:
		return "", nil
	}
}

// parser returns what reads the field out of a body of the request's type, nil
// for types that are not read.
func (f *postField) parser(r core.Request) func(body []byte) (string, error) {
	for _, encoding := range r.HeaderValues("Content-Encoding") {
		if !strings.EqualFold(trimSpace(encoding), "identity") {
			return nil
		}
	}
	types := r.HeaderValues("Content-Type")
	if len(types) == 0 {
		return nil
	}
	// The first line, and the type even if its parameters are malformed: what
	// net/http goes by.
	kind, params, err := mime.ParseMediaType(types[0]) // lower-cases the type
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return nil
	}
	switch {
	case kind == "application/x-www-form-urlencoded":
		return func(body []byte) (string, error) { return formValue(body, f.name) }
	case kind == "multipart/form-data":
		return func(body []byte) (string, error) { return multipartValue(body, params["boundary"], f.name) }
	case kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"):
		return func(body []byte) (string, error) { return jsonValue(body, f.path) }
	default:
		return nil
	}
}

func (f *postField) normalized(value string) string {
	raw := value
	for _, normalize := range f.normalize {
		var err error
		if value, err = normalize(value); err != nil {
			return raw
		}
	}
	return value
}

// once keeps the value of a field that may stand only once.
type once struct {
	value string
	found bool
	count int // fields seen
}

const maxFields = 1000

func (o *once) field() error {
	if o.count++; o.count > maxFields {
		return fmt.Errorf("%w: the body has more than %d fields", core.ErrBadRequest, maxFields)
	}
	return nil
}

var errTwice = fmt.Errorf("%w: the field stands twice", core.ErrBadRequest)

func (o *once) set(value string) error {
	if o.found {
		return errTwice
	}
	o.value, o.found = value, true
	return nil
}
