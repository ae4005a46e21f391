package adaptertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Listen serves an application of net/http on a free port of 127.0.0.1, and returns the address.
func Listen(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// ListenHTTP2 is Listen with TLS and HTTP/2.
func ListenHTTP2(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// Before does what a middleware does before the next handler, in a framework of net/http. It
// returns the request for that handler, and nil for a middleware that every framework has of its
// own.
func Before(m Middleware) func(http.ResponseWriter, *http.Request) *http.Request {
	reads := func(read func(*http.Request)) func(http.ResponseWriter, *http.Request) *http.Request {
		return func(_ http.ResponseWriter, r *http.Request) *http.Request {
			read(r)
			return r
		}
	}
	return map[Middleware]func(http.ResponseWriter, *http.Request) *http.Request{
		Headers: func(w http.ResponseWriter, r *http.Request) *http.Request {
			for name, value := range StaleHeaders {
				w.Header().Set(name, value)
			}
			return r
		},
		Copies: func(_ http.ResponseWriter, r *http.Request) *http.Request {
			return r.Clone(context.WithValue(r.Context(), Copied, Copied)) //nolint:staticcheck // a framework has such keys
		},
		ReadsBody:  reads(func(r *http.Request) { _, _ = io.ReadAll(r.Body) }),
		ReadsPart:  reads(func(r *http.Request) { _, _ = io.ReadFull(r.Body, make([]byte, 8)) }),
		ParsesForm: reads(func(r *http.Request) { _ = r.FormValue("x") }),
	}[m]
}

// Timeouts takes http.TimeoutHandler out of an application's outer middlewares, for frameworks of
// which it can only stand around the whole application.
func Timeouts(ms []Middleware) (others []Middleware, around func(http.Handler) http.Handler) {
	around = func(h http.Handler) http.Handler { return h }
	for _, m := range ms {
		switch m {
		case Timeout:
			around = func(h http.Handler) http.Handler { return http.TimeoutHandler(h, DeadlineAfter, "") }
		case PatientTimeout:
			around = func(h http.Handler) http.Handler { return http.TimeoutHandler(h, PatientAfter, "") }
		default:
			others = append(others, m)
		}
	}
	return others, around
}

// Exchange is what the contexts of the frameworks of net/http have in common.
type Exchange struct {
	W http.ResponseWriter
	R *http.Request
}

// Context implements Context.
func (x Exchange) Context() context.Context { return x.R.Context() }

// Body implements Context.
func (x Exchange) Body() ([]byte, error) { return io.ReadAll(x.R.Body) }

// Form implements Context.
func (x Exchange) Form(name string) string { return x.R.PostFormValue(name) }

// PathValue implements Context.
func (x Exchange) PathValue(name string) string { return x.R.PathValue(name) }

// JSON implements Context.
func (x Exchange) JSON(v any) error { return json.NewDecoder(x.R.Body).Decode(v) }

// Header implements Context.
func (x Exchange) Header(name string) string { return x.R.Header.Get(name) }

// SetHeader implements Context.
func (x Exchange) SetHeader(name, value string) { x.W.Header().Set(name, value) }

// Writer returns the response writer.
func (x Exchange) Writer() http.ResponseWriter { return x.W }

// Respond implements Context.
func (x Exchange) Respond(status int, body string) error {
	x.W.WriteHeader(status)
	if body == "" {
		return nil
	}
	_, err := io.WriteString(x.W, body)
	return err
}

// Stream implements Context.
func (x Exchange) Stream(next func() string) error {
	for part := next(); part != ""; part = next() {
		if _, err := io.WriteString(x.W, part); err != nil {
			return err
		}
		if err := http.NewResponseController(x.W).Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Hijack implements Context.
func (x Exchange) Hijack(raw string, end <-chan struct{}) error {
	conn, rw, err := http.NewResponseController(x.W).Hijack()
	if err != nil {
		return err
	}
	_, err = rw.WriteString(raw)
	err = errors.Join(err, rw.Flush())
	if end != nil {
		go func() {
			<-end
			_ = conn.Close()
		}()
		return err
	}
	return errors.Join(err, conn.Close())
}

// Get prints the response to GET /api as Show does.
func Get(app http.Handler) {
	rec := httptest.NewRecorder()
	app.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api", nil))
	Show(rec.Result(), nil)
}

// Show prints the status and the body of a response, without problem details, for the examples.
func Show(resp *http.Response, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		body = nil
	}
	fmt.Println(resp.StatusCode, string(body))
}
