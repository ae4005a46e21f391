package httplimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
	nethttpreaders "github.com/floodgate-go/floodgate/internal/readers/nethttp"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Parameter: "{id}",
		Own: func(r core.Request, header string) (string, bool) {
			h, found := httplimit.Request(r)
			if !found {
				return "", false
			}
			return h.Header.Get(header), true
		},
		Readers:     readers.Names(nethttpreaders.ByField),
		LimitsFirst: true,
		Serve:       func(t *testing.T, app adaptertest.App) string { return listen(t, build(app)) },
		ServeHTTP2:  func(t *testing.T, app adaptertest.App) string { return listenHTTP2(t, build(app)) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string {
			return listen(t, httplimit.PerIP(quota, window, opts...)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
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
		h = map[adaptertest.Middleware]func(http.Handler) http.Handler{
			adaptertest.Recovery: recoverer,
			adaptertest.CORS:     cors,
			adaptertest.Logging:  logger,

			adaptertest.Deadline:        deadline(adaptertest.DeadlineAfter),
			adaptertest.PatientDeadline: deadline(adaptertest.PatientAfter),
			adaptertest.Timeout:         timeout(adaptertest.DeadlineAfter),
			adaptertest.PatientTimeout:  timeout(adaptertest.PatientAfter),

			adaptertest.Headers: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					for name, value := range adaptertest.StaleHeaders {
						w.Header().Set(name, value)
					}
					next.ServeHTTP(w, r)
				})
			},
			adaptertest.Copies: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.Clone(r.Context())) })
			},
			adaptertest.ReadsBody:  first(func(r *http.Request) { _, _ = io.ReadAll(r.Body) }),
			adaptertest.ReadsPart:  first(func(r *http.Request) { _, _ = io.ReadFull(r.Body, make([]byte, 8)) }),
			adaptertest.ParsesForm: first(func(r *http.Request) { _ = r.FormValue("x") }),
		}[ms[i]](h)
	}
	return h
}

// first calls read before the next handler.
func first(read func(*http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			read(r)
			next.ServeHTTP(w, r)
		})
	}
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
		switch err := h(exchange{w, r}); {
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
type exchange struct {
	w http.ResponseWriter
	r *http.Request
}

func (x exchange) Context() context.Context { return x.r.Context() }
func (x exchange) Body() ([]byte, error)    { return io.ReadAll(x.r.Body) }
func (x exchange) Form(name string) string  { return x.r.PostFormValue(name) }
func (x exchange) Read(field, reader string) string {
	return nethttpreaders.ByField[field][reader](x.r)
}
func (x exchange) JSON(v any) error             { return json.NewDecoder(x.r.Body).Decode(v) }
func (x exchange) Header(name string) string    { return x.r.Header.Get(name) }
func (x exchange) SetHeader(name, value string) { x.w.Header().Set(name, value) }

func (x exchange) Respond(status int, body string) error {
	x.w.WriteHeader(status)
	if body == "" {
		return nil
	}
	_, err := io.WriteString(x.w, body)
	return err
}

func (x exchange) Decision() (core.Decision, bool) { return httplimit.DecisionFrom(x.r.Context()) }
func (x exchange) PathValue(name string) string    { return x.r.PathValue(name) }
func (x exchange) SetCost(cost int64) bool         { return httplimit.SetCost(x.r.Context(), cost) }

func (x exchange) Deny(d core.Decision) error {
	httplimit.Deny(x.w, x.r, d)
	return nil
}

func (x exchange) Stream(next func() string) error {
	for part := next(); part != ""; part = next() {
		if _, err := io.WriteString(x.w, part); err != nil {
			return err
		}
		if err := http.NewResponseController(x.w).Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (x exchange) Hijack(raw string, end <-chan struct{}) error {
	conn, _, err := http.NewResponseController(x.w).Hijack()
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
