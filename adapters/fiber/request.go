package fiberlimit

import (
	"context"
	"reflect"

	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/adapters/internal/fasthttprequest"
	"github.com/floodgate-go/floodgate/core"
)

// major adapts the shared code to Fiber v2.
var major = fasthttprequest.Major{
	Adapter: "fiberlimit",
	Methods: fiber.DefaultMethods,
	Context: func(c fasthttprequest.Ctx) context.Context { return own(c).UserContext() },
	Route: func(c fasthttprequest.Ctx) string {
		route := own(c).Route()
		if use.Of(reflect.ValueOf(route).Elem()) {
			return ""
		}
		return route.Path
	},
	HandleError: func(c fasthttprequest.Ctx, failed error) {
		if err := own(c).App().ErrorHandler(own(c), failed); err != nil {
			_ = own(c).SendStatus(fiber.StatusInternalServerError)
		}
	},
	Bodies: func(c fasthttprequest.Ctx) fasthttprequest.Bodies {
		config := own(c).App().Config()
		return fasthttprequest.Bodies{Limit: config.BodyLimit, KeepMultipart: config.DisablePreParseMultipartForm}
	},
	IsChild: fiber.IsChild,
}

// own returns the context as Fiber's own type, which it is.
func own(c fasthttprequest.Ctx) *fiber.Ctx { return c.(*fiber.Ctx) }

var use = fasthttprequest.NewUseField(reflect.TypeFor[fiber.Route]())

// Ctx returns the *fiber.Ctx that r stands for, for key functions and hooks. It
// returns false if r is a request of another framework. The caller must not keep the
// result, and reads the body with [core.Request].Body, so that the handler can read it too.
func Ctx(r core.Request) (*fiber.Ctx, bool) {
	c, ok := r.Value(fasthttprequest.Key{}).(*fiber.Ctx)
	return c, ok
}
