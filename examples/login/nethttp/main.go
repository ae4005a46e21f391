// Command nethttp serves a limited API and a protected login form with net/http. Log in six times
// with a wrong password: look at the answer on the page, and at the line in the log.
//
//	go run ./examples/login/nethttp
package main

import (
	"fmt"
	"net/http"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/examples/login/site"
)

func main() {
	site.Main(func(s *site.Site) site.Server { return site.HTTPServer(routes(s)) })
}

// routes is the whole of what is net/http's own.
func routes(s *site.Site) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /api", httplimit.Middleware(s.API)(http.HandlerFunc(api)))
	mux.Handle("POST /login", httplimit.Middleware(s.Login)(login(s)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(site.Page)
	})
	return mux
}

func api(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

func login(s *site.Site) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// PostFormValue reads the body only; FormValue reads the query too.
		username := r.PostFormValue("username")
		if !site.PasswordRight(username, r.PostFormValue("password")) {
			http.Error(w, "wrong username or password", http.StatusUnauthorized)
			return
		}
		if cookie := s.DeviceCookie(r.Context(), username); cookie != nil {
			http.SetCookie(w, cookie)
		}
		fmt.Fprintln(w, "welcome")
	}
}
