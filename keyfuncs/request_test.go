package keyfuncs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// request is a request that a test makes up.
type request struct {
	method, path, route, remote, rawQuery string
	header                                http.Header
	cookies, query, params                map[string]string
	values                                map[any]any
	body                                  string
	bodyErr                               error
}

func (r *request) Context() context.Context          { return context.Background() }
func (r *request) Method() string                    { return r.method }
func (r *request) Path() string                      { return r.path }
func (r *request) EscapedPath() string               { return r.path }
func (r *request) RawQuery() string                  { return r.rawQuery }
func (r *request) Route() string                     { return r.route }
func (r *request) PathValue(name string) string      { return r.params[name] }
func (r *request) RemoteAddr() string                { return r.remote }
func (r *request) HeaderValues(name string) []string { return r.header.Values(name) }
func (r *request) Value(key any) any                 { return r.values[key] }

func (r *request) Cookie(name string) (string, bool) {
	if v, found := r.cookies[name]; found {
		return v, true
	}
	c, err := (&http.Request{Header: r.header}).Cookie(name) // as net/http reads the header
	if err != nil {
		return "", false
	}
	return c.Value, true
}

func (r *request) Query(name string) (string, bool) {
	v, found := r.query[name]
	return v, found
}

func (r *request) Body(max int) ([]byte, error) {
	if max > keyfuncs.MaxBody+1 {
		panic("a client must not make the limiter hold a long body in memory")
	}
	return []byte(r.body[:min(max, len(r.body))]), r.bodyErr
}

// headers makes a header of names and values, one after the other.
func headers(lines ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(lines); i += 2 {
		h.Add(lines[i], lines[i+1])
	}
	return h
}

// keyOf returns the key of a request, and fails where there is none.
func keyOf(t testing.TB, f core.KeyFunc, r core.Request) string {
	t.Helper()
	key, err := f([]byte("before"), r)
	if err != nil {
		t.Fatalf("error %v", err)
	}
	if len(key) < 6 || string(key[:6]) != "before" {
		t.Fatalf("what was in dst has changed: %q", key)
	}
	return string(key[6:])
}

const bad = "<bad request>"

// check compares a key, or a bad request, with what is wanted.
func check(t *testing.T, what string, f core.KeyFunc, r *request, want string) {
	t.Helper()
	key, err := f(nil, r)
	switch {
	case want == bad && !errors.Is(err, core.ErrBadRequest):
		t.Errorf("%s: key %q, error %v, want a bad request", what, key, err)
	case want == bad:
		var told *core.BadRequestError
		if !errors.As(err, &told) || strings.Contains(told.Detail, "victim") {
			t.Errorf("%s: the client is told %+v", what, told)
		}
	case err != nil || string(key) != want:
		t.Errorf("%s: key %q, error %v, want %q", what, key, err, want)
	}
}

// logged is a request to a limiter with a log.
type logged struct {
	*request
	log *slog.Logger
}

func (r logged) Value(key any) any {
	if key == (requestlog.Key{}) {
		return r.log
	}
	return nil
}

// defaultLog returns what the default logger writes while the test runs.
func defaultLog(t *testing.T, level slog.Level) *bytes.Buffer {
	t.Helper()
	log, before := &bytes.Buffer{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})))
	t.Cleanup(func() { slog.SetDefault(before) })
	return log
}

// looked is a request that counts how often a header is asked for.
type looked struct {
	request
	asked *int
}

func (r *looked) HeaderValues(name string) []string {
	*r.asked++
	return r.header.Values(name)
}
