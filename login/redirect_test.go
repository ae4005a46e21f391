package login_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// found is a redirect as a handler, or its framework, may write it.
func found(location string) core.Outcome {
	return core.Outcome{Status: http.StatusFound, Header: func(name string) string {
		if name == "Location" {
			return location
		}
		return ""
	}}
}

// A redirect that leads back to the form is a failure.
func TestRedirectFails(t *testing.T) {
	for locations, rows := range map[string]map[string]bool{
		"/login": {
			"/login": false, "/login?error=1": false, "/login#form": false, "/login/": false, "https://example.org/login?x": false,
			"//example.org/login": false, "login?error=1": false, "./login": false, "?error=1": false, "#form": false,
			"/home/../login": false, "/%6Cogin": false, "\t/login": false, " /login": false, "/login \t": false, "/lo%zzgin": false, "/login?next=https://example.org/home": false,
			"/": true, "/home": true, "home": true, "https://example.org": true, "/logins": true, "/Login": true,
			"/home?from=/login": true, "/app/login": true, "": true,
		},
		"/": {"/": false, "https://example.org": false, "https://example.org?x=1": false, "/home": true},
		"/app/login": {
			"login": false, "/app/login": false, "../app/login": false, "/login": true, "../login": true,
		},
		":login":                    {"/:login": false, "/home": true}, // not a URL
		"https://example.org/login": {"/login": false, "https://www.example.org/login": false, "/home": true},
	} {
		success := login.RedirectFails("/elsewhere", locations)
		for location, want := range rows {
			if got := success(found(location)); got != want {
				t.Errorf("redirect to %q, form at %q: success %v, want %v", location, locations, got, want)
			}
		}
	}
	success := login.RedirectFails("/login")
	for status, want := range map[int]bool{299: true, 300: false, 399: false, 400: false, 401: false} {
		for location, want := range map[string]bool{"/login": want, "/home": status < 400} {
			o := found(location)
			o.Status = status
			if got := success(o); got != want {
				t.Errorf("status %d with the Location %q: success %v, want %v", status, location, got, want)
			}
		}
	}
	for status, want := range map[int]bool{200: true, 204: true, 302: true, 304: true, 400: false, 401: false, 422: false} {
		if got := success(core.Outcome{Status: status}); got != want {
			t.Errorf("status %d, headers not known: success %v, want %v", status, got, want)
		}
	}
}

// A redirect to the path of the form is never a success, and no text makes the function
// panic.
func FuzzRedirectFails(f *testing.F) {
	for _, s := range []string{"/login", "login?x=://", "//h/login", "?", "%zz", "mailto:a", "\x00"} {
		f.Add(s, "/login")
	}
	f.Fuzz(func(t *testing.T, location, form string) {
		success := login.RedirectFails(form)
		_ = success(found(location))
		if form == "/login" && success(found("/login?"+location)) {
			t.Errorf("a redirect to /login?%s is a success", location)
		}
	})
}

func ExampleRedirectFails() {
	success := login.RedirectFails("/login")
	fmt.Println(success(found("/login?error=password")), success(found("/home")))
	// Output: false true
}
