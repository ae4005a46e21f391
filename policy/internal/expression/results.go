package expression

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// String returns the expression as it is written in the file.
func (e *Expression) String() string { return e.text }

// written has the values that a client can choose, and their names for messages.
var written = map[string]string{"path": "path", "header": "header", "query": "query parameter", "param": "path parameter", "cookie": "cookie", "form": "form field", "json": "JSON field"}

// Written returns the name of the first value that the expression reads and a client can choose,
// such as "query parameter"; "" if there is none. The expression may be nil.
func (e *Expression) Written() string {
	if e == nil {
		return ""
	}
	for _, name := range e.values {
		if what, found := written[name]; found && (name != "header" || !e.trusted()) {
			return what
		}
	}
	return ""
}

// Lacks returns what a request without a key lacks, for the client: such as `the header "X-Api-Key"
// is missing`. It returns "" if the expression is more than one value of the request, or if clients
// do not write the value.
func (e *Expression) Lacks() string {
	if e.single == nil || e.Written() == "" {
		return ""
	}
	for f := range e.fields {
		return fmt.Sprintf("the %s %q is missing", written[f.kind], f.name)
	}
	return ""
}

// trusted reports whether all headers that the expression reads are trusted.
func (e *Expression) trusted() bool {
	for f := range e.fields {
		if f.kind == "header" && !slices.ContainsFunc(e.sources.Trusted, func(name string) bool { return strings.EqualFold(name, f.name) }) {
			return false
		}
	}
	return true
}

// Key appends the expression's value as text to dst.
func (e *Expression) Key(dst []byte, r core.Request) ([]byte, error) {
	if e.single != nil {
		return e.single(dst, r)
	}
	v, err := e.value(r)
	if err != nil {
		return dst, err
	}
	return appendText(dst, v)
}

// appendText appends a value as text. Equal values are equal text.
func appendText(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, nil
	case string:
		return append(dst, v...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case float64:
		return strconv.AppendFloat(dst, v, 'f', -1, 64), nil
	}
	return dst, fmt.Errorf("%w: the expression's value is a %T", core.ErrBadRequest, v)
}

// Holds returns the value of an expression that is true or false. One that cannot be evaluated is
// taken for true: a client must not escape a limit that way.
func (e *Expression) Holds(r core.Request) bool {
	v, err := e.run(r, true)
	return err != nil || v != false
}

// Hits returns the value of an expression that is a number of hits. Fractions count as a whole hit.
func (e *Expression) Hits(r core.Request) (int64, error) {
	v, err := e.value(r)
	if err != nil {
		return 0, err
	}
	f, ok := v.(float64)
	if f = math.Ceil(f); !ok || f < 0 || f > core.MaxQuota+1 || math.IsNaN(f) {
		return 0, fmt.Errorf("%w: cost must be a number of hits, 0 or more", core.ErrBadRequest)
	}
	return int64(f), nil
}

// MayBeEmpty reports whether the expression is one value of a request that a request may lack, such
// as a header. The expression may be nil.
func (e *Expression) MayBeEmpty() bool {
	return e != nil && e.single != nil && !slices.Contains([]string{"ip", "method", "path"}, e.values[0])
}
