package ginlimit_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// noHijack is a response writer whose Hijack fails.
type noHijack struct{ *httptest.ResponseRecorder }

func (noHijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// Handlers write in each of the ways that Gin has, before and after the client goes away. The
// outcome has the status that the client has seen. Then the context has the writer that it had before.
func TestTheOutcomeHasTheFirstStatusThatWasSent(t *testing.T) {
	hijack := func(c *gin.Context) {
		if _, _, err := c.Writer.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Error(err)
		}
	}
	timeout := gin.WrapH(http.TimeoutHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), time.Minute, ""))
	for name, row := range map[string]struct {
		do     func(c *gin.Context, goes func())
		status int
	}{
		"a failed hijack":                               {func(c *gin.Context, _ func()) { hijack(c) }, 200},
		"a failed hijack, then 401":                     {func(c *gin.Context, _ func()) { hijack(c); c.String(401, "no") }, 200}, // for Gin, the response has begun
		"401, then 200":                                 {func(c *gin.Context, _ func()) { c.String(401, "no"); c.String(200, "yes") }, 401},
		"401 without a body, then 200":                  {func(c *gin.Context, _ func()) { c.AbortWithStatus(401); c.String(200, "yes") }, 401},
		"401, then a panic":                             {func(c *gin.Context, _ func()) { c.String(401, "no"); panic("on purpose") }, 401},
		"a flush, then 401":                             {func(c *gin.Context, _ func()) { c.Writer.Flush(); c.String(401, "no") }, 200},
		"401, the client leaves, then 200":              {func(c *gin.Context, goes func()) { c.String(401, "no"); goes(); c.String(200, "yes") }, 401},
		"200, the client leaves, then more of the body": {func(c *gin.Context, goes func()) { c.String(200, "yes"); goes(); _, _ = c.Writer.WriteString("x") }, 200},
		"a flush, the client leaves, another flush":     {func(c *gin.Context, goes func()) { c.Writer.Flush(); goes(); c.Writer.Flush() }, 200},
		"the client leaves, then a failed hijack":       {func(c *gin.Context, goes func()) { goes(); hijack(c) }, core.StatusCanceled},
		"the client leaves":                             {func(_ *gin.Context, goes func()) { goes() }, core.StatusCanceled},
		"the client leaves, then a status":              {func(c *gin.Context, goes func()) { goes(); c.Status(204) }, core.StatusCanceled},
		"the client leaves, then a status is sent":      {func(c *gin.Context, goes func()) { goes(); c.AbortWithStatus(204) }, core.StatusCanceled},
		"the client leaves, then 401":                   {func(c *gin.Context, goes func()) { goes(); c.String(401, "no") }, core.StatusCanceled},
		"the client leaves, then JSON":                  {func(c *gin.Context, goes func()) { goes(); c.JSON(200, gin.H{}) }, core.StatusCanceled},
		"the client leaves, then a string":              {func(c *gin.Context, goes func()) { goes(); _, _ = io.WriteString(c.Writer, "welcome") }, core.StatusCanceled},
		"the client leaves, then a flush":               {func(c *gin.Context, goes func()) { goes(); c.Writer.Flush() }, core.StatusCanceled},
		"the client leaves, then a redirect":            {func(c *gin.Context, goes func()) { goes(); c.Redirect(http.StatusFound, "/home") }, core.StatusCanceled},
		"the client leaves, then http.TimeoutHandler":   {func(c *gin.Context, goes func()) { goes(); timeout(c) }, core.StatusCanceled},
	} {
		watched := hooktest.Watch(t)
		ctx, cancel := context.WithCancel(t.Context())
		app := gin.New()
		app.Use(func(c *gin.Context) {
			before := c.Writer
			defer func() {
				if _ = recover(); c.Writer != before {
					t.Errorf("%s: the context has another writer", name)
				}
			}()
			c.Next()
		})
		app.POST("/", ginlimit.Middleware(watched), func(c *gin.Context) { row.do(c, cancel) })
		app.ServeHTTP(noHijack{httptest.NewRecorder()}, httptest.NewRequest(http.MethodPost, "/", http.NoBody).WithContext(ctx))
		cancel()
		learnt := watched.Next(t)
		if learnt.Status != row.status || learnt.Canceled != (row.status == core.StatusCanceled) || learnt.Panicked != strings.Contains(name, "panic") {
			t.Errorf("%s: the limiter learns %+v, want %d", name, learnt, row.status)
		}
	}
}

// The handlers behind one that denies the request do not run.
func TestADenialEndsTheChain(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}))
	ran := 0
	e := gin.New()
	e.Use(func(g *gin.Context) {
		before := ran
		if ginlimit.PerIP(1000, time.Hour)(g); ran == before && g.Writer.Status() == 200 {
			t.Error("the limiter returns before the next handlers have run")
		}
	})
	e.GET("/", func(g *gin.Context) {
		d, err := l.Take(g.Request.Context(), 1, core.Hit{Rule: "r", Key: "k"})
		if err != nil {
			t.Error(err)
		}
		if !d.Allowed {
			ginlimit.Deny(g, d)
		}
	}, func(*gin.Context) { ran++ })
	for _, want := range []int{200, 429} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
	if ran != 1 {
		t.Errorf("the next handler ran %d times, want 1", ran)
	}
}

// A middleware before the limiter writes the response, so that the limiter cannot know its status.
func TestAnErrorThatAnotherMiddlewareAnswersIsNoSuccess(t *testing.T) {
	failed := errors.New("failed")
	for name, row := range map[string]struct {
		handler gin.HandlerFunc
		want    int
	}{
		"an error":                             {func(c *gin.Context) { _ = c.Error(failed) }, 400},
		"an error and a status":                {func(c *gin.Context) { _ = c.AbortWithError(http.StatusUnauthorized, failed) }, 401},
		"an error and a status that Gin sends": {func(c *gin.Context) { c.Status(http.StatusBadGateway); _ = c.Error(failed) }, 502},
		"an error and a status of the server":  {func(c *gin.Context) { _ = c.AbortWithError(http.StatusBadGateway, failed) }, 502},
		"an error that is noted for the log":   {func(c *gin.Context) { _ = c.Error(failed); c.String(http.StatusOK, "ok") }, 200},
		"nothing":                              {func(*gin.Context) {}, 200},
		"a status":                             {func(c *gin.Context) { c.Status(http.StatusNoContent) }, 204},
	} {
		watched := hooktest.Watch(t)
		e := gin.New()
		e.Use(func(c *gin.Context) { _ = c.Error(errors.New("of before")); c.Next() }, answerErrors)
		e.GET("/", ginlimit.Middleware(watched), row.handler)
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		learnt := watched.Next(t)
		if learnt.Status != row.want {
			t.Errorf("%s: the limiter learns %+v, want %d", name, learnt, row.want)
		}
	}
}
