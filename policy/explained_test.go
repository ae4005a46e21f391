package policy_test

import (
	"context"
	"net/http"
	"net/url"
)

// explained is a request without a connection.
type explained struct {
	method, path, address string
	header                http.Header
	query                 url.Values
}

func (e *explained) Context() context.Context { return context.Background() }
func (e *explained) Method() string {
	if e.method == "" {
		return "GET"
	}
	return e.method
}
func (e *explained) Path() string            { return "/" + e.path }
func (e *explained) EscapedPath() string     { return "" }
func (e *explained) PathValue(string) string { return "" }
func (e *explained) RawQuery() string        { return e.query.Encode() }
func (e *explained) Route() string           { return "" }
func (e *explained) RemoteAddr() string      { return e.address }
func (e *explained) HeaderValues(name string) []string {
	return e.header[http.CanonicalHeaderKey(name)]
}
func (e *explained) Cookie(string) (string, bool)     { return "", false }
func (e *explained) Query(name string) (string, bool) { return e.query.Get(name), e.query.Has(name) }
func (e *explained) Value(any) any                    { return nil }
func (e *explained) Body(int) ([]byte, error)         { return nil, nil }
