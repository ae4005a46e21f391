package core

import "reflect"

const maxEmbedded = 100

// nilEmbedded returns the name of an embedded interface that is nil, at any
// depth: calling what it promotes would panic on the first request.
func nilEmbedded(v reflect.Value, depth int) string {
	if depth > maxEmbedded { // hooks that embed themselves: none of them is nil
		return ""
	}
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return v.Type().String()
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return ""
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.Anonymous {
			continue
		}
		switch f.Type.Kind() {
		case reflect.Interface, reflect.Pointer:
			if f.Type.Implements(reflect.TypeFor[Hooks]()) {
				if name := nilEmbedded(v.Field(i), depth+1); name != "" {
					return f.Name
				}
			}
		case reflect.Struct:
			if name := nilEmbedded(v.Field(i), depth+1); name != "" {
				return name
			}
		}
	}
	return ""
}
