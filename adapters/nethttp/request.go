package httplimit

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// request is an *http.Request as the core sees it. As it is one pointer, making
// an interface of it allocates nothing.
type request struct{ http *http.Request }

var _ core.Request = request{}

func (r request) Context() context.Context { return r.http.Context() }

func (r request) Method() string {
	if r.http.Method == "" { // as net/http's own client-side requests have it
		return http.MethodGet
	}
	return r.http.Method
}

func (r request) Path() string {
	if r.http.URL == nil {
		return ""
	}
	return r.http.URL.Path
}

// Route returns the pattern that http.ServeMux has matched.
func (r request) Route() string { return r.http.Pattern }

func (r request) RemoteAddr() string { return r.http.RemoteAddr }

func (r request) HeaderValues(name string) []string {
	if strings.EqualFold(name, "Host") {
		return []string{r.http.Host} // net/http takes it out of the header
	}
	return r.http.Header.Values(name)
}

func (r request) Cookie(name string) (string, bool) {
	c, err := r.http.Cookie(name)
	if err != nil {
		return "", false
	}
	return c.Value, true
}

func (r request) Query(name string) (string, bool) {
	if r.http.URL == nil || r.http.URL.RawQuery == "" {
		return "", false
	}
	values, _ := url.ParseQuery(r.http.URL.RawQuery) // what can be read of it
	v, found := values[name]
	if !found {
		return "", false
	}
	return v[0], true
}

func (r request) Value(key any) any { return r.http.Context().Value(key) }

func (r request) Body(max int) ([]byte, error) {
	if r.http.Body == nil || r.http.Body == http.NoBody {
		return nil, nil
	}
	kept, ok := r.http.Body.(*keptBody)
	if !ok {
		kept = &keptBody{rest: r.http.Body}
		r.http.Body = kept
	}
	return kept.head(max)
}
