// Command tollbooth is the new program for those who come from didip/tollbooth.
//
//	go run ./examples/coming-from/tollbooth
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

type userKey struct{}

// authenticate stores the user's name if the password is right.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if password != "password of "+user {
			http.Error(w, "wrong password", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// limitedUser returns the user if it is one of those that are limited. The rule
// does not apply to the others.
func limitedUser(r core.Request) string {
	if user, _ := r.Value(userKey{}).(string); user == "bob" {
		return user
	}
	return ""
}

func main() {
	limiter, err := core.New(core.Config{
		Name: "api",
		Rules: []core.Rule{{
			Name:   "user",
			Key:    keyfuncs.Join(keyfuncs.User(limitedUser), keyfuncs.ClientIP()),
			Limits: []core.Limit{{Quota: 3, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 3}},
		}},
		Headers: core.HeadersDraft03, // RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset
	})
	if err != nil {
		log.Fatal(err)
	}
	app := authenticate(httplimit.Middleware(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for _, user := range []string{"bob", "bob", "bob", "bob", "ann"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, "password of "+user)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, r)
		fmt.Println(user, w.Code, w.Header().Get("RateLimit-Remaining"))
	}
}
