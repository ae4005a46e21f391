package ginlimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
)

func read(c *gin.Context) string {
	d, found := ginlimit.DecisionFrom(c)
	return fmt.Sprint(d.Remaining, " ", found, " ", len(ginlimit.DecisionsFrom(c)))
}

func serve(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Body.String()
}

// Without the option, a copy finds the decision only while the handlers run.
func TestACopyOfTheContextHasTheDecision(t *testing.T) {
	for _, expose := range []bool{false, true} {
		var opts []ginlimit.Option
		if expose {
			opts = append(opts, ginlimit.ExposeDecision())
		}
		r, limit := gin.New(), ginlimit.Middleware(newLimiter(t, 10, 0), opts...)
		during, after, answered := make(chan string), make(chan string), make(chan struct{})
		r.GET("/copy", limit, func(c *gin.Context) {
			copied := c.Copy()
			go func() {
				during <- read(copied)
				<-answered
				after <- read(copied)
			}()
			c.String(http.StatusOK, <-during)
		})
		r.GET("/", limit, func(c *gin.Context) { c.String(http.StatusOK, read(c)) })
		if got := serve(r, "/copy"); got != "9 true 1" {
			t.Errorf("ExposeDecision %t: the copy reads %q", expose, got)
		}
		for left := 8; left >= 6; left-- {
			if got, want := serve(r, "/"), fmt.Sprint(left, " true 1"); got != want {
				t.Errorf("ExposeDecision %t: a later handler reads %q, want %q", expose, got, want)
			}
		}
		close(answered)
		if got, want := <-after, map[bool]string{false: "0 false 0", true: "9 true 1"}[expose]; got != want {
			t.Errorf("ExposeDecision %t: after the response, the copy reads %q, want %q", expose, got, want)
		}
	}
}

// Without the option, only the handlers behind the limiter find it.
func TestExposeDecisionIsForMiddlewaresBeforeTheLimiter(t *testing.T) {
	for _, expose := range []bool{false, true} {
		var opts []ginlimit.Option
		if expose {
			opts = append(opts, ginlimit.ExposeDecision())
		}
		r, got := gin.New(), ""
		r.Use(func(c *gin.Context) {
			got = read(c)
			c.Next()
			got += ", " + read(c)
		}, ginlimit.Middleware(newLimiter(t, 20, 0), opts...))
		r.GET("/", ginlimit.Middleware(newLimiter(t, 10, 0), opts...), func(*gin.Context) {})
		serve(r, "/")
		if want := map[bool]string{false: "0 false 0, 0 false 0", true: "0 false 0, 9 true 2"}[expose]; got != want {
			t.Errorf("ExposeDecision %t: the middleware reads %q, want %q", expose, got, want)
		}
	}
}

// Engine.HandleContext routes the request again with the same context, Engine.ServeHTTP
// with another one.
func TestARequestThatIsRoutedAgain(t *testing.T) {
	for name, row := range map[string]struct {
		again func(r *gin.Engine, c *gin.Context)
		want  string
	}{
		"HandleContext": {func(r *gin.Engine, c *gin.Context) { r.HandleContext(c) }, "9 true 1, 9 true 1"},
		"ServeHTTP":     {func(r *gin.Engine, c *gin.Context) { r.ServeHTTP(c.Writer, c.Request) }, "8 true 1, 9 true 1"},
	} {
		r := gin.New()
		r.Use(ginlimit.Middleware(newLimiter(t, 10, 0)))
		r.GET("/api", func(c *gin.Context) { c.String(http.StatusOK, read(c)) })
		r.GET("/again", func(c *gin.Context) {
			c.Request.URL.Path = "/api"
			row.again(r, c)
			_, _ = c.Writer.WriteString(", " + read(c))
		})
		if got := serve(r, "/again"); got != row.want {
			t.Errorf("%s: the handlers read %q, want %q", name, got, row.want)
		}
	}
}

// A test of a handler makes such a context.
func TestAContextWithoutALimiterHasNoDecision(t *testing.T) {
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	if got := read(c); got != "0 false 0" {
		t.Errorf("the handler reads %q", got)
	}
}
