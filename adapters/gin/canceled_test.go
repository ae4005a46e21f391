package ginlimit_test

import (
	"bufio"
	"context"
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
