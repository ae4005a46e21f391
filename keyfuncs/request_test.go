package keyfuncs_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
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
