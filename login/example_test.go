package login_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// post sends a login form.
func post(app http.Handler, password string) {
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader("username=alice&password="+password))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Header().Get("Retry-After"))))
}

func logIn(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("password") != "correct horse" {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// Six wrong passwords, and the right one too late.
func ExampleNewGuard() {
	guard, err := login.NewGuard(login.Config{Field: "username"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	app := httplimit.Middleware(guard)(http.HandlerFunc(logIn))
	for range 6 {
		post(app, "guess")
	}
	post(app, "correct+horse")
	// Output:
	// 401
	// 401
	// 401
	// 401
	// 401
	// 429 30
	// 429 30
}

// A handler that sets a device cookie after a success, and asks for a second
// factor while somebody guesses.
func ExampleGuard_DeviceCookie() {
	guard := core.Must(login.NewGuard(login.Config{Field: "username", Secrets: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	app := httplimit.Middleware(guard, httplimit.ExposeDecision())(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := httplimit.DecisionFrom(r.Context())
		if login.SuspicionOf(d).Suspicious {
			http.Redirect(w, r, "/second-factor", http.StatusSeeOther)
			return
		}
		cookie, err := guard.DeviceCookie(r.Context(), r.PostFormValue("username"))
		if err != nil {
			http.Error(w, "no cookie", http.StatusInternalServerError)
			return
		}
		http.SetCookie(w, cookie)
		fmt.Println(cookie.Name, cookie.Secure, cookie.HttpOnly)
	}))
	post(app, "correct+horse")
	// Output:
	// __Host-device true true
	// 200
}

func ExampleGuard_Unblock() {
	guard := core.Must(login.NewGuard(login.Config{Field: "username"}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	app := httplimit.Middleware(guard)(http.HandlerFunc(logIn))
	for range 6 {
		post(app, "guess")
	}
	before, err := guard.Status(context.Background(), "Alice", "192.0.2.1")
	fmt.Println(before.RetryAfter > 0, err)
	fmt.Println(guard.Unblock(context.Background(), "Alice"))
	post(app, "correct+horse")
	// Output:
	// 401
	// 401
	// 401
	// 401
	// 401
	// 429 30
	// true <nil>
	// <nil>
	// 200
}

// An office whose people share one address has tried too often.
func ExampleGuard_UnblockAddress() {
	guard := core.Must(login.NewGuard(login.Config{Field: "username", Attempts: core.PerMinute(1)}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	app := httplimit.Middleware(guard)(http.HandlerFunc(logIn))
	post(app, "correct+horse")
	before, err := guard.Status(context.Background(), "Alice", "192.0.2.1")
	fmt.Println(before.RetryAfter > 0, err)
	fmt.Println(guard.UnblockAddress(context.Background(), "192.0.2.1"))
	post(app, "correct+horse")
	// Output:
	// 200
	// true <nil>
	// <nil>
	// 200
}

// A handler that has stored a new password. The browser that was trusted before
// is a stranger now, and no longer gets in while the account is under attack.
func ExampleGuard_Forget() {
	now := func() time.Time { return time.Unix(1_764_000_000, 0) }
	one := core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow}
	guard := core.Must(login.NewGuard(login.Config{Field: "username", AccountFailures: one, Clock: now}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	app := httplimit.Middleware(guard)(http.HandlerFunc(logIn))
	post(app, "guess")         // the account is over its limit
	post(app, "correct+horse") // a stranger is denied
	if err := guard.Trust(context.Background(), "alice", "192.0.2.1"); err != nil {
		fmt.Println(err)
	}
	post(app, "correct+horse") // the address is known
	if err := guard.Forget(context.Background(), "alice"); err != nil {
		fmt.Println("try again:", err)
	}
	post(app, "correct+horse")
	// Output:
	// 401
	// 429 3600
	// 200
	// 429 3600
}

// A handler that has checked a passkey. The guess before it has no consequence, and the
// address is known.
func ExampleGuard_Trust() {
	guard := core.Must(login.NewGuard(login.Config{Field: "username"}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	post(httplimit.Middleware(guard)(http.HandlerFunc(logIn)), "guess")
	passkey := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr) // behind a proxy: the client's address
		if err := guard.Trust(r.Context(), "alice", host); err != nil {
			fmt.Println("not known:", err) // log in all the same
		}
	})
	passkey.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/passkey", http.NoBody))
	s, err := guard.Status(context.Background(), "alice", "192.0.2.1")
	fmt.Println(s.KnownAddress, s.AddressAccount.Remaining, err)
	// Output:
	// 401
	// true 5 <nil>
}

func ExampleNormalize() {
	fmt.Println(login.Normalize(" Alice ") == login.Normalize("ＡＬＩＣＥ"))
	// Output: true
}

func ExampleBasicUser() {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.SetBasicAuth("Alice", "secret")
	guard := core.Must(login.NewGuard(login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{http.MethodGet}}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	app := httplimit.Middleware(guard)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	for range 6 {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, r)
		fmt.Print(w.Code, " ")
	}
	// Output: 401 401 401 401 401 429
}

// A captcha for strangers once somebody guesses the passwords of an account.
func ExampleSuspicion() {
	ask := &core.Denial{Status: http.StatusForbidden, Body: []byte("Are you human?")}
	guard := core.Must(login.NewGuard(login.Config{
		Field: "username", SuspiciousAfter: 2,
		OnSuspicion: func(r core.Request, s login.Suspicion) *core.Denial {
			if answer, _ := r.Query("captcha"); answer == "42" {
				return nil
			}
			fmt.Println(s.Failures, "of", s.Limit)
			return ask
		},
	}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	app := httplimit.Middleware(guard)(http.HandlerFunc(logIn))
	for range 3 {
		post(app, "guess")
	}
	// Output:
	// 401
	// 401
	// 2 of 100
	// 403
}

// An audit log that tells accounts and addresses apart, and names nobody.
func ExampleEvent() {
	guard := core.Must(login.NewGuard(login.Config{Field: "username", OnEvent: func(e login.Event) {
		fmt.Println(e.Kind, e.Rule, len(e.Account), len(e.Address))
	}}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	app := httplimit.Middleware(guard)(http.HandlerFunc(logIn))
	post(app, "guess")
	post(app, "correct+horse")
	// Output:
	// failed  32 32
	// 401
	// succeeded  32 32
	// 200
}
