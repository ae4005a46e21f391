package httplimit

import "net/http"

// PathValues returns a middleware that stores the parameters of a matched route in the
// request, so that [keyfuncs.PathValue] finds them. It is for routers that store them in
// another place. vars returns the parameters of a request, or nil. It may be called
// concurrently. Mount the middleware behind the router's matching and before the limiter:
//
//	router.Use(httplimit.PathValues(mux.Vars)) // gorilla/mux
//	router.Use(httplimit.PerIP(100, time.Minute))
//
// http.ServeMux needs no such middleware, nor does chi from v5.0.12. PathValues panics if vars
// is nil.
func PathValues(vars func(*http.Request) map[string]string) func(http.Handler) http.Handler {
	if vars == nil {
		panic("httplimit: PathValues: vars is nil: pass a function such as gorilla's mux.Vars")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for name, value := range vars(r) {
				r.SetPathValue(name, value)
			}
			next.ServeHTTP(w, r)
		})
	}
}
