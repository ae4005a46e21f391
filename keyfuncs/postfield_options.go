package keyfuncs

import (
	"fmt"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// PostFieldOption is an option of [PostField]: [MaxBody], [RefuseLongBody],
// [RequireValue], [Strict], [FormsOnly], [JSONPath] or [Normalize].
type PostFieldOption func(*postField)

// MaxBody sets the maximum length of a body, in bytes: 1 to 2^30. The default is
// [DefaultMaxBody], 64 KiB. In a longer body the field counts as missing. PostField
// panics if bytes is out of range.
func MaxBody(bytes int) PostFieldOption {
	return func(f *postField) {
		if bytes < 1 || bytes > 1<<30 {
			panic(fmt.Errorf("%w: MaxBody: %d: must be from 1 to 2^30", core.ErrConfig, bytes))
		}
		f.maxBody = bytes
	}
}

// RefuseLongBody refuses a request whose body is longer than MaxBody, with a
// [core.BadRequestError]. By default, the field counts as missing.
func RefuseLongBody() PostFieldOption {
	return func(f *postField) { f.refuseLong = true }
}

// RequireValue refuses a request if the field has no value, with a
// [core.BadRequestError]. By default, all requests without a value share one quota.
func RequireValue() PostFieldOption {
	return func(f *postField) { f.require = true }
}

// Strict refuses a request, with a [core.BadRequestError], if a handler could find another
// value in the body than PostField. By default, the key is the value that PostField finds,
// or empty. Strict refuses
//   - a body of another type, such as XML or YAML, or without a Content-Type;
//   - a body that is compressed, malformed or longer than MaxBody;
//   - a value that is a file, an array or an object;
//   - a number in JSON with a point or an exponent, of 2^53 or more, or of -2^53 or less,
//     and a string in JSON that is not valid UTF-8;
//   - a form that a decoder of XML, YAML, TOML or MessagePack could read, such as a form
//     with an unescaped line break or brace;
//   - a body of JSON or a multipart form in which a decoder of forms could read the
//     field, such as one with &username= in another value;
//   - a form in which the value of another field is a JSON object with a member of the
//     name, because Gin reads it into a struct.
//
// With Strict, a path that ends with the name is the field too, because Fiber's
// BodyParser reads credentials.username into a field of an embedded struct. If the name
// is a path such as user[name], its last part is the field too, because Gin's ShouldBind
// reads name into a field of a nested struct.
//
// Strict does not refuse a body without the field: see [RequireValue].
func Strict() PostFieldOption {
	return func(f *postField) { f.strict = true }
}

// FormsOnly makes PostField read forms only. A JSON body is then a body of another type.
// By default, PostField reads both.
func FormsOnly() PostFieldOption {
	return func(f *postField) { f.formsOnly = true }
}

// JSONPath sets the path of the field in a JSON body: the names of the objects, the
// outermost first, and then the name of the field. By default, the name of [PostField]
// is the path. PostField panics if there are no names.
func JSONPath(names ...string) PostFieldOption {
	return func(f *postField) {
		if len(names) == 0 {
			panic(fmt.Errorf("%w: JSONPath: no names: write the names of the objects and of the field, such as \"user\", \"name\"", core.ErrConfig))
		}
		f.path = slices.Clone(names)
	}
}

// Normalize adds a function that maps different spellings of a value to one key, such as
// [TrimSpace], [FoldCase] or [PlainName]. By default, the value is not changed. Several
// functions are applied in order, also to an empty value. If f returns an error that
// wraps [core.ErrBadRequest], the key function returns it. After any other error, the key
// is the value as it was sent. f may be called concurrently. Normalize panics if f is nil.
func Normalize(f func(string) (string, error)) PostFieldOption {
	mustHave("Normalize", "f: nil: must be a function such as keyfuncs.FoldCase", f != nil)
	return func(p *postField) { p.normalize = append(p.normalize, f) }
}
