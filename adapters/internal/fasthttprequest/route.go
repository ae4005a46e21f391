package fasthttprequest

import "reflect"

// UseField is the unexported field of a fiber.Route that is true if the route is a
// middleware mounted with Use. The only other way to find out is App.GetRoutes, which
// leaves such routes out and copies all others at each call.
type UseField struct {
	index []int
	found bool
}

// NewUseField returns the field of the type fiber.Route.
func NewUseField(route reflect.Type) UseField {
	field, found := route.FieldByName("use")
	return UseField{field.Index, found && field.Type.Kind() == reflect.Bool}
}

// Known reports whether Fiber still has the field.
func (u UseField) Known() bool { return u.found }

// Of returns the field of a fiber.Route. It returns false if Fiber no longer has the field.
func (u UseField) Of(route reflect.Value) bool {
	return u.found && route.FieldByIndex(u.index).Bool()
}
