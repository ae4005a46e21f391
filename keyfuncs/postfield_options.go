package keyfuncs

import (
	"fmt"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// PostFieldOption is an option of [PostField].
type PostFieldOption func(*postField)

// MaxBody sets how many bytes of the body are read, 1 to 2^30; the default is
// [DefaultMaxBody]. In a longer body the field counts as absent. MaxBody panics
// if bytes is out of range.
func MaxBody(bytes int) PostFieldOption {
	return func(f *postField) {
		if bytes < 1 || bytes > 1<<30 {
			panic(fmt.Errorf("%w: MaxBody: %d: must be from 1 to 2^30", core.ErrConfig, bytes))
		}
		f.maxBody = bytes
	}
}

// RefuseLongBody refuses a body that is longer than MaxBody.
func RefuseLongBody() PostFieldOption {
	return func(f *postField) { f.refuseLong = true }
}

// RequireValue refuses a request without a value. Without it, all requests
// without a value share one quota.
func RequireValue() PostFieldOption {
	return func(f *postField) { f.require = true }
}

// Strict refuses a request whose body a handler may read and PostField cannot:
// a body of another type (XML, YAML, a type that is missing), a body that is
// compressed, malformed or longer than MaxBody, and a file, an array or an
// object in place of the value. Of the numbers of JSON it takes whole ones between
// -2^53 and 2^53, without a point or an exponent, and of the strings those that
// are valid UTF-8. It also refuses a form that a decoder of XML, YAML, TOML or
// MessagePack could read, such as one with a line break or a brace that is not
// escaped, and one of which another field's value is a JSON object with a member
// of the name, which Gin reads into a struct. A path that ends with the name counts as the
// name, as Fiber's BodyParser reads credentials.username into a field of an
// embedded struct. If the name is a path such as user[name], its last part counts
// as the name too, as Gin's ShouldBind reads name into a field of a nested struct.
// A body without the field is not refused: see [RequireValue].
func Strict() PostFieldOption {
	return func(f *postField) { f.strict = true }
}

// FormsOnly makes PostField read forms only: a JSON body has no value.
func FormsOnly() PostFieldOption {
	return func(f *postField) { f.formsOnly = true }
}

// JSONPath says where in a JSON body the field is: the names of the objects,
// the outermost first, and then the field's name. Without it the name of
// [PostField] says it.
func JSONPath(names ...string) PostFieldOption {
	return func(f *postField) {
		if len(names) == 0 {
			panic(fmt.Errorf("%w: JSONPath: no names", core.ErrConfig))
		}
		f.path = slices.Clone(names)
	}
}

// Normalize adds a function that maps different spellings of a value to one
// key, such as [TrimSpace], [FoldCase] and [PlainName]. Several are applied in
// order. If a function returns an error that wraps [core.ErrBadRequest], the
// request is refused; after any other error the value is used as it came. An
// empty value is normalized too. Normalize panics if f is nil.
func Normalize(f func(string) (string, error)) PostFieldOption {
	mustHave("Normalize", "function", f != nil)
	return func(p *postField) { p.normalize = append(p.normalize, f) }
}
