// Command ratelimitcache is the new program for those who come from a Django-style decorator.
//
//	go run ./examples/coming-from/ratelimitcache
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

// decorator replaces three hooks, as a subclass overrides methods.
type decorator struct{ core.DefaultHooks }

// ShouldLimit is should_ratelimit.
func (decorator) ShouldLimit(r core.Request) bool { return r.Method() == http.MethodPost }

// KeyExtra is key_extra: each path has counters of its own.
func (decorator) KeyExtra(r core.Request) (string, error) { return r.Path(), nil }

// OnDisallowed is disallowed.
func (decorator) OnDisallowed(core.Request, core.Decision) core.Denial {
	return core.Denial{Status: http.StatusForbidden, Body: []byte("Rate limit exceeded")}
}

func main() {
	store, err := memcachedstore.New([]string{"127.0.0.1:11211"})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := core.New(core.Config{
		Name: "login", // prefix
		Rules: []core.Rule{{
			Name:   "name",
			Key:    keyfuncs.Join(keyfuncs.ClientIP(), keyfuncs.PostField("username")), // key_field
			Limits: []core.Limit{{Quota: 3, Window: 2 * time.Minute, Algorithm: core.BucketedWindow, Precision: time.Minute}},
		}},
		Store: store,
		Hooks: decorator{},
	})
	if err != nil {
		log.Fatal(err)
	}
	view := httplimit.Middleware(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, user := range []string{"ann", "ann", "ann", "ann", "bob"} {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(url.Values{"username": {user}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		view.ServeHTTP(w, r)
		fmt.Println(user, w.Code, w.Body)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}
}
