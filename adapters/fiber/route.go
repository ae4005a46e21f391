package fiberlimit

import (
	"reflect"

	"github.com/gofiber/fiber/v2"
)

// useField is where Fiber notes that a route is a middleware mounted with Use.
// Fiber tells nobody else: App.GetRoutes leaves such routes out, but makes a
// copy of all others each time.
var useField, hasUseField = reflect.TypeFor[fiber.Route]().FieldByName("use")

// mountedByUse says whether a route is a middleware mounted with Use. If Fiber
// no longer has the field, nothing can be told, and every route is a route.
func mountedByUse(r *fiber.Route) bool {
	return hasUseField && useField.Type.Kind() == reflect.Bool && reflect.ValueOf(r).Elem().FieldByIndex(useField.Index).Bool()
}
