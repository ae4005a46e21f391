package httplimit_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Name:      "httplimit",
		Mount:     func(c core.Checker, n int) { httplimit.Middleware(c, make([]httplimit.Option, n)...) },
		Parameter: "{id}",
		Own: func(r core.Request, header string) (string, bool) {
			h, found := httplimit.Request(r)
			if !found {
				return "", false
			}
			return h.Header.Get(header), true
		},
		LimitsFirst: true,
		Serve:       func(t *testing.T, app adaptertest.App) string { return adaptertest.Listen(t, build(app)) },
		ServeHTTP2:  func(t *testing.T, app adaptertest.App) string { return adaptertest.ListenHTTP2(t, build(app)) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string {
			return adaptertest.Listen(t, httplimit.PerIP(quota, window, opts...)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		},
		Flushes:     true,
		SendsAtOnce: true,
		Hijacks:     true,
		Panics:      true,

		SeesCancel:     true,
		TimeoutOutside: true,
		TimeoutInside:  true,
	})
}

// build makes a ServeMux application. A group is a mux of its own.
func build(app adaptertest.App) http.Handler {
	mux := http.NewServeMux()
	for _, r := range app.Routes {
		pattern := r.Pattern
		if pattern == "/" {
			pattern = "/{$}"
		}
		mux.Handle(r.Method+" "+app.Group+pattern, wrap(r.Limits, handler(r.Handler, app.AnswersErrors)))
	}
	h := wrap(app.Limits, surround(app.Inside, mux))
	if app.Group != "" {
		mux := http.NewServeMux()
		mux.Handle(app.Group+"/", h)
		h = mux
	}
	if app.User != "" {
		h = authenticate(app.User, h)
	}
	return surround(app.Outside, h)
}

// surround puts an application's own middlewares around h.
func surround(ms []adaptertest.Middleware, h http.Handler) http.Handler {
	for i := len(ms) - 1; i >= 0; i-- {
		if before := adaptertest.Before(ms[i]); before != nil {
			next := h
			h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, before(w, r)) })
			continue
		}
		h = map[adaptertest.Middleware]func(http.Handler) http.Handler{
			adaptertest.Recovery: recoverer,
			adaptertest.CORS:     cors,
			adaptertest.Logging:  logger,

			adaptertest.Deadline:        deadline(adaptertest.DeadlineAfter),
			adaptertest.PatientDeadline: deadline(adaptertest.PatientAfter),
			adaptertest.Timeout:         timeout(adaptertest.DeadlineAfter),
			adaptertest.PatientTimeout:  timeout(adaptertest.PatientAfter),
		}[ms[i]](h)
	}
	return h
}

func cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") == adaptertest.AllowedOrigin {
			w.Header().Set("Access-Control-Allow-Origin", adaptertest.AllowedOrigin)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func deadline(after time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), after)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				w.WriteHeader(http.StatusGatewayTimeout) // too late if next has written
			}
		})
	}
}

func timeout(after time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler { return http.TimeoutHandler(next, after, "") }
}

// logger wraps the writer, as those do that log the status.
func logger(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		logged := &loggedWriter{ResponseWriter: w}
		next.ServeHTTP(logged, r)
		log.New(io.Discard, "", 0).Print(r.Method, r.URL.Path, logged.status)
	})
}

type loggedWriter struct {
	http.ResponseWriter
	status int
}

func (w *loggedWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *loggedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func wrap(limits []adaptertest.Limit, h http.Handler) http.Handler {
	for i := len(limits) - 1; i >= 0; i-- {
		l := limits[i]
		var opts []httplimit.Option
		if l.Denied != "" {
			opts = append(opts, httplimit.OnDenied(func(w http.ResponseWriter, _ *http.Request, _ core.Decision) {
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, l.Denied)
			}))
		}
		if l.Expose {
			opts = append(opts, httplimit.ExposeDecision())
		}
		h = httplimit.Middleware(l.Checker, opts...)(h)
	}
	return h
}

func authenticate(user string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), adaptertest.UserKey, user))) //nolint:staticcheck // the key that the table knows
	})
}

func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func handler(h adaptertest.Handler, answersErrors bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status adaptertest.StatusError
		switch err := h(exchange{adaptertest.Exchange{W: w, R: r}}); {
		case errors.As(err, &status):
			w.WriteHeader(int(status))
		case answersErrors && errors.Is(err, adaptertest.ErrWrongPassword):
			w.WriteHeader(http.StatusUnauthorized)
		case err != nil:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
}

// exchange is a request and its response as the table's handlers see them.
type exchange struct{ adaptertest.Exchange }

func (x exchange) Decision() (core.Decision, bool) { return httplimit.DecisionFrom(x.R.Context()) }
func (x exchange) SetCost(cost int64) bool         { return httplimit.SetCost(x.R.Context(), cost) }

func (x exchange) Deny(d core.Decision) error {
	httplimit.Deny(x.W, x.R, d)
	return nil
}

// program serves GET /api.
func program(c core.Checker) (serve func()) {
	h := http.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if c != nil {
		h = httplimit.Middleware(c)(h)
	}
	return adaptertest.HTTPProgram(h)
}

func BenchmarkMiddleware(b *testing.B) { adaptertest.Benchmark(b, program) }

func TestAllocations(t *testing.T) {
	adaptertest.Allocations{NoHeaders: 0, Headers: 2, Denied: 3, DeniedNoHeaders: 2, InFlight: 5}.Check(t, program)
}
