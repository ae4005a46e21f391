// Command guard protects a login form. examples/login has the same as a site.
//
//	go run ./examples/guard
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

func main() {
	guard := core.Must(login.NewGuard(login.Config{
		Field:   "username",
		Secrets: [][]byte{[]byte("take 32 random bytes from a file!")}, // signs device cookies
	}))
	defer func() { _ = guard.Close() }()
	app := httplimit.Middleware(guard)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		username := r.PostFormValue("username") // reads the body only
		if r.PostFormValue("password") != "correct horse" {
			http.Error(w, "wrong username or password", http.StatusUnauthorized)
			return
		}
		if cookie, err := guard.DeviceCookie(r.Context(), username); err == nil {
			http.SetCookie(w, cookie)
		}
		fmt.Fprintln(w, "welcome")
	}))

	post := func(from, password string) {
		form := url.Values{"username": {"alice"}, "password": {password}}
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		app.ServeHTTP(w, r)
		fmt.Println(from, w.Code, w.Header().Get("Retry-After"))
	}
	for range 6 {
		post("203.0.113.9:1000", "guess")
	}
	post("198.51.100.7:1000", "correct horse") // the owner, from somewhere else
}
