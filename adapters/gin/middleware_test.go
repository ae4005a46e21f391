package ginlimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// The handlers write in each of the ways that Gin has.
func TestResponsesAfterTheClientHasGoneCountAsCanceled(t *testing.T) {
	for name, write := range map[string]func(c *gin.Context){
		"nothing":             func(*gin.Context) {},
		"a status":            func(c *gin.Context) { c.Status(http.StatusNoContent) },
		"a status, sent":      func(c *gin.Context) { c.AbortWithStatus(http.StatusNoContent) },
		"JSON":                func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{}) },
		"a string":            func(c *gin.Context) { _, _ = io.WriteString(c.Writer, "welcome") },
		"a flush":             func(c *gin.Context) { c.Writer.Flush() },
		"a redirect":          func(c *gin.Context) { c.Redirect(http.StatusFound, "/home") },
		"http.TimeoutHandler": gin.WrapH(http.TimeoutHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), time.Minute, "")),
	} {
		t.Run(name, func(t *testing.T) {
			var learnt core.Outcome
			l := core.Must(core.New(core.Config{Rules: []core.Rule{{
				Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(10)},
				Counts: func(_ core.Request, o core.Outcome) bool {
					learnt = o
					return true
				},
			}}}))
			ctx, cancel := context.WithCancel(context.Background())
			app := gin.New()
			app.POST("/", ginlimit.Middleware(l), func(*gin.Context) { cancel() }, write)
			app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody).WithContext(ctx))
			if !learnt.Canceled || learnt.Status != core.StatusCanceled {
				t.Errorf("the limiter learnt %+v", learnt)
			}
		})
	}
}

// http.ResponseController finds the methods of the server's writer.
func TestResponseControllerUnwrapsTheWatchedWriter(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(10)},
		Counts: func(core.Request, core.Outcome) bool { return true },
	}}}))
	app := gin.New()
	var err error
	app.GET("/", ginlimit.Middleware(l), func(c *gin.Context) {
		err = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(time.Minute))
	})
	c := httptest.NewServer(app)
	defer c.Close()
	resp, getErr := c.Client().Get(c.URL)
	if getErr != nil {
		t.Fatal(getErr)
	}
	_ = resp.Body.Close()
	if err != nil {
		t.Errorf("SetReadDeadline: %v", err)
	}
}

// noHijack is a response writer whose Hijack fails.
type noHijack struct{ *httptest.ResponseRecorder }

func (noHijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// Handlers write several times, before and after the client goes away. The outcome has the
// status that the client has seen.
func TestTheOutcomeHasTheFirstStatusThatWasSent(t *testing.T) {
	hijack := func(c *gin.Context) { _, _, _ = c.Writer.Hijack() }
	for name, row := range map[string]struct {
		do     func(c *gin.Context, goes func())
		status int
	}{
		"a failed hijack":                               {func(c *gin.Context, _ func()) { hijack(c) }, 200},
		"a failed hijack, then 401":                     {func(c *gin.Context, _ func()) { hijack(c); c.String(401, "no") }, 200}, // for Gin, the response has begun
		"401, then 200":                                 {func(c *gin.Context, _ func()) { c.String(401, "no"); c.String(200, "yes") }, 401},
		"a flush, then 401":                             {func(c *gin.Context, _ func()) { c.Writer.Flush(); c.String(401, "no") }, 200},
		"401, the client leaves, then 200":              {func(c *gin.Context, goes func()) { c.String(401, "no"); goes(); c.String(200, "yes") }, 401},
		"200, the client leaves, then more of the body": {func(c *gin.Context, goes func()) { c.String(200, "yes"); goes(); _, _ = c.Writer.WriteString("x") }, 200},
		"a flush, the client leaves, another flush":     {func(c *gin.Context, goes func()) { c.Writer.Flush(); goes(); c.Writer.Flush() }, 200},
		"the client leaves, then a failed hijack":       {func(c *gin.Context, goes func()) { goes(); hijack(c) }, core.StatusCanceled},
		"the client leaves, then 401":                   {func(c *gin.Context, goes func()) { goes(); c.String(401, "no") }, core.StatusCanceled},
	} {
		var learnt core.Outcome
		l := core.Must(core.New(core.Config{Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(10)},
			Counts: func(_ core.Request, o core.Outcome) bool {
				learnt = o
				return true
			},
		}}}))
		ctx, cancel := context.WithCancel(t.Context())
		app := gin.New()
		app.POST("/", ginlimit.Middleware(l), func(c *gin.Context) { row.do(c, cancel) })
		app.ServeHTTP(noHijack{httptest.NewRecorder()}, httptest.NewRequest(http.MethodPost, "/", http.NoBody).WithContext(ctx))
		cancel()
		if learnt.Status != row.status || learnt.Canceled != (row.status == core.StatusCanceled) || learnt.Panicked {
			t.Errorf("%s: the limiter learns %+v, want %d", name, learnt, row.status)
		}
	}
}

// A test of a handler makes such a context.
func TestAContextWithoutALimiterHasNoDecision(t *testing.T) {
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	if d, found := ginlimit.DecisionFrom(c); found || d.Allowed || ginlimit.SetCost(c, 1) {
		t.Errorf("found %v", d)
	}
}

// The handlers behind one that denies the request do not run.
func TestADenialEndsTheChain(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}))
	ran := 0
	e := gin.New()
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

// A middleware before the limiter writes the response, so that the limiter cannot
// know its status.
func TestAnErrorThatAnotherMiddlewareAnswersIsNoSuccess(t *testing.T) {
	var got []int
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "ip", Key: keyfuncs.Static("k"), Limits: []core.Limit{core.PerMinute(100)},
		Counts: func(_ core.Request, o core.Outcome) bool { got = append(got, o.Status); return true },
	}}}))
	failed := errors.New("failed")
	for name, row := range map[string]struct {
		handler gin.HandlerFunc
		want    int
	}{
		"an error":                            {func(c *gin.Context) { _ = c.Error(failed) }, 400},
		"an error and a status":               {func(c *gin.Context) { _ = c.AbortWithError(http.StatusUnauthorized, failed) }, 401},
		"an error and a status of the server": {func(c *gin.Context) { _ = c.AbortWithError(http.StatusBadGateway, failed) }, 502},
		"an error that is noted for the log":  {func(c *gin.Context) { _ = c.Error(failed); c.String(http.StatusOK, "ok") }, 200},
		"nothing":                             {func(*gin.Context) {}, 200},
		"a status":                            {func(c *gin.Context) { c.Status(http.StatusNoContent) }, 204},
	} {
		got = nil
		e := gin.New()
		e.Use(func(c *gin.Context) { _ = c.Error(errors.New("of before")); c.Next() }, answerErrors)
		e.GET("/", ginlimit.Middleware(limiter), row.handler)
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		if len(got) != 1 || got[0] != row.want {
			t.Errorf("%s: the outcome's status is %v, want %d", name, got, row.want)
		}
	}
}

func TestANilOptionIsNamed(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1)}}}}))
	defer func() {
		const want = "ginlimit: an option is nil: write one such as ginlimit.OnDenied(f), or none"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %s, want %s", got, want)
		}
	}()
	ginlimit.Middleware(l, nil)
}

// After the request, the context has the writer that it had before the limiter, also if the handler panics.
func TestTheWriterIsRestored(t *testing.T) {
	counts := func(core.Request, core.Outcome) bool { return true }
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "all", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(9)}, Counts: counts}}}))
	restored := 0
	e := gin.New()
	e.Use(func(g *gin.Context) {
		before := g.Writer
		defer func() {
			_ = recover()
			if g.Writer == before {
				restored++
			}
		}()
		g.Next()
	}, ginlimit.Middleware(l))
	e.GET("/", func(g *gin.Context) {
		if g.Query("panic") != "" {
			panic("on purpose")
		}
		g.String(http.StatusOK, "yes")
	})
	for i, target := range []string{"/", "/?panic=1"} {
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
		if restored != i+1 {
			t.Errorf("%s: the context has another writer", target)
		}
	}
}
