package fasthttprequest

import (
	"context"
	"log/slog"
	"reflect"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// Ctx has the methods that *fiber.Ctx of v2 and fiber.Ctx of v3 have in common.
type Ctx interface {
	Next() error
	Path(override ...string) string
	Method(override ...string) string
	Params(name string, defaultValue ...string) string
}

// Major describes a major version of Fiber. Its functions get a Ctx of this version. They may be
// called concurrently.
type Major struct {
	// Adapter is the name of the adapter's package, for errors and for the log.
	Adapter string
	// Methods are the methods whose names need no copy.
	Methods []string
	// Context returns the context that the application has set, or an empty one.
	Context func(Ctx) context.Context
	// Route returns the pattern of the route for which the middleware runs, or "" if the
	// middleware is mounted with Use.
	Route func(Ctx) string
	// HandleError passes an error to the application's ErrorHandler, as Fiber does.
	HandleError func(Ctx, error)
	// Bodies returns the application's configuration.
	Bodies func(Ctx) Bodies
	// IsChild reports whether the process is a child that Prefork has started.
	IsChild func() bool
}

// Bodies is an application's configuration of bodies.
type Bodies struct {
	Limit         int  // the most bytes of a body; 0 or less: fasthttp's default
	KeepMultipart bool // fasthttp does not parse multipart forms when it reads the request
}

// countsApart reports whether this process is one of the children that Prefork starts and
// c counts in this process only.
func (m *Major) countsApart(c core.Checker) bool {
	g, ok := c.(interface{ Guarantees() core.Guarantees })
	return ok && m.IsChild() && !g.Guarantees().Shared
}

var saidApart sync.Once

// sayApart writes a line to slog.Default(), once in this process. Requests call it, and
// not the constructor, because the program may set its log after it has mounted the limiter.
func (m *Major) sayApart(limiter string) {
	saidApart.Do(func() {
		slog.Warn(m.Adapter+": Prefork is on: each child process counts for itself and allows the whole quota. Give the limiter a shared store, such as stores/redis, or turn Prefork off",
			"limiter", limiter)
	})
}

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
