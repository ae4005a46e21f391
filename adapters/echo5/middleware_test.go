package echo5limit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// hidden is a response writer that has no method to find the writer below.
type hidden struct{ http.ResponseWriter }

// Echo v5 gives a handler an http.ResponseWriter. Whichever writer below it the handler
// writes to, the status counts. A middleware before the limiter has the response that it had.
func TestTheStatusCountsWhicheverWriterTheHandlerWritesTo(t *testing.T) {
	for name, write := range map[string]func(*echo.Context) error{
		"the context": func(c *echo.Context) error { return c.NoContent(http.StatusUnauthorized) },
		"JSON":        func(c *echo.Context) error { return c.JSON(http.StatusUnauthorized, "no") },
		"Echo's Response": func(c *echo.Context) error {
			r, err := echo.UnwrapResponse(c.Response())
			if err == nil {
				r.WriteHeader(http.StatusUnauthorized)
			}
			return err
		},
		"the status that Echo's Response is told": func(c *echo.Context) error {
			r, err := echo.UnwrapResponse(c.Response())
			if err == nil {
				r.Status = http.StatusUnauthorized
				_, err = r.Write([]byte("no"))
			}
			return err
		},
		"a panic after it": func(c *echo.Context) error { _ = c.NoContent(http.StatusUnauthorized); panic("the handler's") },
		"an error":         func(*echo.Context) error { return echo.ErrUnauthorized },
		"a wrapped writer": wrapped(func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }),
	} {
		for kind, outside := range map[string]echo.MiddlewareFunc{"": first(func(*echo.Context) {}), ", in Gzip": middleware.Gzip()} {
			watched := hooktest.Watch(t)
			e := newEcho()
			e.Use(outside, func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					before := c.Response()
					defer func() {
						if _ = recover(); c.Response() != before {
							t.Errorf("%s%s: the response is a %T, want the %T that it was", name, kind, c.Response(), before)
						}
					}()
					return next(c)
				}
			})
			e.POST("/login", write, echo5limit.Middleware(watched))
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/login", http.NoBody))
			learnt := watched.Next(t)
			if w.Code != http.StatusUnauthorized || learnt.Status != http.StatusUnauthorized {
				t.Errorf("%s%s: the client gets %d, the limiter learns %+v", name, kind, w.Code, learnt)
			}
		}
	}
}

// wrapped is a handler behind a middleware of net/http that wraps the writer.
func wrapped(write func(http.ResponseWriter)) echo.HandlerFunc {
	return echo.WrapHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(hidden{w}) }))
}

// A router with AutoHandleHEAD answers HEAD with the handler for GET, and writes the
// status after the limiter has settled.
func TestTheStatusOfAHEADThatTheHandlerOfGETAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		handler echo.HandlerFunc
		status  int
	}{
		"a status": {func(c *echo.Context) error { return c.String(http.StatusAccepted, "hello") }, http.StatusAccepted},
		"an error": {func(*echo.Context) error { return echo.ErrUnauthorized }, http.StatusUnauthorized},
		"nothing":  {func(*echo.Context) error { return nil }, http.StatusOK},
	} {
		watched := hooktest.Watch(t)
		e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(echo.RouterConfig{AutoHandleHEAD: true})})
		e.GET("/api", row.handler, echo5limit.Middleware(watched))
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/api", http.NoBody))
		learnt := watched.Next(t)
		if w.Code != row.status || learnt.Status != row.status || w.Body.Len() > 0 {
			t.Errorf("%s: the client gets %d %q, the limiter learns %+v", name, w.Code, w.Body, learnt)
		}
	}
	e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(echo.RouterConfig{AutoHandleHEAD: true})})
	e.GET("/api", func(*echo.Context) error { return nil }, echo5limit.PerIP(0, time.Minute))
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/api", http.NoBody))
	if w.Code != http.StatusTooManyRequests || w.Body.Len() > 0 || w.Header().Get("Ratelimit") == "" {
		t.Errorf("denied: %d %v %q", w.Code, w.Header(), w.Body)
	}
}

// A test of a handler makes such a context.
func TestAContextWithoutAnApplicationIsServed(t *testing.T) {
	watched := hooktest.Watch(t)
	w := httptest.NewRecorder()
	c := echo.NewContext(httptest.NewRequest(http.MethodGet, "/", http.NoBody), w)
	err := echo5limit.Middleware(watched)(func(*echo.Context) error { return echo.ErrUnauthorized })(c)
	learnt := watched.Next(t)
	if err == nil || learnt.Status != http.StatusUnauthorized {
		t.Errorf("%v, the limiter learns %+v", err, learnt)
	}
}
