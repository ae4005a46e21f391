// Package nilcheck finds what a caller has left nil.
package nilcheck

import "reflect"

// IsNil reports whether x is nil or a nil pointer. A nil *T in an interface is not equal to nil,
// and its methods would panic later, at the first request.
func IsNil(x any) bool {
	v := reflect.ValueOf(x)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
