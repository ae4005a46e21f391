// Package mounting has what all adapters check when a middleware is made.
package mounting

import (
	"fmt"
	"reflect"

	"github.com/floodgate-go/floodgate/core"
)

// MustWork panics where a checker is nil, a nil pointer, or of a type whose
// values cannot be compared: adapters compare checkers to know one again.
func MustWork(adapter string, c core.Checker) {
	v := reflect.ValueOf(c)
	switch {
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil():
		panic(fmt.Errorf("%s: Middleware: the checker is nil (%T)", adapter, c))
	case !v.Comparable():
		panic(fmt.Errorf("%s: Middleware: a checker of type %T cannot be compared: use a pointer", adapter, c))
	}
}
