package fiberlimit

import (
	"reflect"

	"github.com/gofiber/fiber/v2"
)

// useField is the unexported field of a fiber.Route that is true if the route is a
// middleware mounted with Use. The only other way to find out is App.GetRoutes, which
// leaves such routes out and copies all others at each call.
var useField, hasUseField = reflect.TypeFor[fiber.Route]().FieldByName("use")

// mountedByUse reports whether a route is a middleware mounted with Use. It returns false
// for every route if Fiber no longer has the field.
func mountedByUse(r *fiber.Route) bool {
	return hasUseField && useField.Type.Kind() == reflect.Bool && reflect.ValueOf(r).Elem().FieldByIndex(useField.Index).Bool()
}
