package ginlimit_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
	ginreaders "github.com/floodgate-go/floodgate/internal/readers/gin"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Parameter: ":id",
		Own: func(r core.Request, header string) (string, bool) {
			c, found := ginlimit.Context(r)
			if !found {
				return "", false
			}
			return c.GetHeader(header), true
		},
		Readers:    readers.Names(ginreaders.ByField),
		Serve:      func(t *testing.T, app adaptertest.App) string { return listen(t, build(app)) },
		ServeHTTP2: func(t *testing.T, app adaptertest.App) string { return listenHTTP2(t, build(app)) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string {
			return listen(t, perIP(quota, window, opts))
		},
		Flushes:     true,
		SendsAtOnce: true,
		Hijacks:     true,
		Panics:      true,

		SeesCancel:     true,
		TimeoutOutside: true,
	})
}

func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func listenHTTP2(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func perIP(quota int64, window time.Duration, opts []keyfuncs.ClientIPOption) http.Handler {
	r := gin.New()
	r.GET("/", ginlimit.PerIP(quota, window, opts...), func(*gin.Context) {})
	return r
}

func init() { gin.SetMode(gin.TestMode) }

// build makes a Gin application.
func build(app adaptertest.App) http.Handler {
	r := gin.New()
	outside, around := adaptertest.Timeouts(app.Outside)
	r.Use(surround(outside)...)
	if app.User != "" {
		r.Use(func(c *gin.Context) { c.Set(adaptertest.UserKey, app.User) })
	}
	limits := append(middleware(app.Limits), surround(app.Inside)...)
	if app.AnswersErrors {
		limits = append(limits, answerErrors)
	}
	routes := gin.IRoutes(r)
	if app.Group != "" {
		routes = r.Group(app.Group)
	}
	routes.Use(limits...)
	for _, route := range app.Routes {
		routes.Handle(route.Method, route.Pattern, append(middleware(route.Limits), handler(route.Handler, app.AnswersErrors))...)
	}
	return around(r)
}

func surround(ms []adaptertest.Middleware) (hs []gin.HandlerFunc) {
	for _, m := range ms {
		hs = append(hs, map[adaptertest.Middleware]gin.HandlerFunc{
			adaptertest.Recovery: gin.RecoveryWithWriter(io.Discard),
			adaptertest.CORS:     cors,
			adaptertest.Logging:  gin.LoggerWithWriter(io.Discard),

			adaptertest.Deadline:        deadline(adaptertest.DeadlineAfter),
			adaptertest.PatientDeadline: deadline(adaptertest.PatientAfter),

			adaptertest.Headers: func(c *gin.Context) {
				for name, value := range adaptertest.StaleHeaders {
					c.Header(name, value)
				}
			},
			adaptertest.Copies:     func(c *gin.Context) { c.Request = c.Request.Clone(c.Request.Context()) },
			adaptertest.ReadsBody:  func(c *gin.Context) { _, _ = c.GetRawData() },
			adaptertest.ReadsPart:  func(c *gin.Context) { _, _ = io.ReadFull(c.Request.Body, make([]byte, 8)) },
			adaptertest.ParsesForm: func(c *gin.Context) { _ = c.PostForm("x") },
		}[m])
	}
	return hs
}

func cors(c *gin.Context) {
	if c.GetHeader("Origin") == adaptertest.AllowedOrigin {
		c.Header("Access-Control-Allow-Origin", adaptertest.AllowedOrigin)
		if c.Request.Method == http.MethodOptions && c.GetHeader("Access-Control-Request-Method") != "" {
			c.AbortWithStatus(http.StatusNoContent)
		}
	}
}

func deadline(after time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), after)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// answerErrors writes what the handlers have left in the context's errors.
func answerErrors(c *gin.Context) {
	c.Next()
	if last := c.Errors.Last(); last != nil && !c.Writer.Written() {
		status := http.StatusInternalServerError
		if errors.Is(last, adaptertest.ErrWrongPassword) {
			status = http.StatusUnauthorized
		}
		c.AbortWithStatus(status)
	}
}

func middleware(limits []adaptertest.Limit) (hs []gin.HandlerFunc) {
	for _, l := range limits {
		var opts []ginlimit.Option
		if l.Denied != "" {
			opts = append(opts, ginlimit.OnDenied(func(c *gin.Context, _ core.Decision) { c.String(http.StatusTeapot, l.Denied) }))
		}
		if l.Expose {
			opts = append(opts, ginlimit.ExposeDecision())
		}
		hs = append(hs, ginlimit.Middleware(l.Checker, opts...))
	}
	return hs
}

func handler(h adaptertest.Handler, answered bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		var status adaptertest.StatusError
		switch err := h(exchange{c}); {
		case errors.As(err, &status):
			_ = c.AbortWithError(int(status), err)
		case err != nil && answered:
			_ = c.Error(err)
		case err != nil:
			c.AbortWithStatus(http.StatusInternalServerError)
		}
	}
}

// exchange is a request and its response as the table's handlers see them.
type exchange struct{ c *gin.Context }

func (x exchange) Context() context.Context         { return x.c.Request.Context() }
func (x exchange) Body() ([]byte, error)            { return io.ReadAll(x.c.Request.Body) }
func (x exchange) Form(name string) string          { return x.c.PostForm(name) }
func (x exchange) Read(field, reader string) string { return ginreaders.ByField[field][reader](x.c) }
func (x exchange) JSON(v any) error                 { return x.c.ShouldBindJSON(v) }
func (x exchange) Header(name string) string        { return x.c.GetHeader(name) }
func (x exchange) SetHeader(name, value string)     { x.c.Header(name, value) }
func (x exchange) Decision() (core.Decision, bool)  { return ginlimit.DecisionFrom(x.c) }
func (x exchange) PathValue(name string) string     { return x.c.Param(name) }
func (x exchange) SetCost(cost int64) bool          { return ginlimit.SetCost(x.c, cost) }

func (x exchange) Deny(d core.Decision) error {
	ginlimit.Deny(x.c, d)
	return nil
}

func (x exchange) Respond(status int, body string) error {
	x.c.Status(status)
	x.c.Writer.WriteHeaderNow()
	if body == "" {
		return nil
	}
	_, err := x.c.Writer.WriteString(body)
	return err
}

func (x exchange) Stream(next func() string) error {
	for part := next(); part != ""; part = next() {
		if _, err := x.c.Writer.WriteString(part); err != nil {
			return err
		}
		x.c.Writer.Flush()
	}
	return nil
}

func (x exchange) Hijack(raw string, end <-chan struct{}) error {
	conn, _, err := x.c.Writer.Hijack()
	if err != nil {
		return err
	}
	_, err = io.WriteString(conn, raw)
	if end != nil {
		go func() {
			<-end
			_ = conn.Close()
		}()
		return err
	}
	return errors.Join(err, conn.Close())
}
