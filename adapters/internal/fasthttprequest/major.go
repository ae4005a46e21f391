package fasthttprequest

import "context"

// Ctx is what the contexts of all majors of Fiber have: *fiber.Ctx of v2 and fiber.Ctx of
// v3.
type Ctx interface {
	Next() error
	Path(override ...string) string
	Method(override ...string) string
	Params(name string, defaultValue ...string) string
}

// Major is what the majors of Fiber differ in. Its functions get a Ctx of this major. They
// may be called concurrently.
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
