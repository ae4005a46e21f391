package live_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
	"github.com/floodgate-go/floodgate/login"
)

// mayDo stands for the application's own check.
func mayDo(r *http.Request, _ live.Action) (who string, err error) {
	if name := r.Header.Get("X-Operator"); name != "" {
		return name, nil
	}
	return "", errors.New("no operator")
}

// A page beside an API. Mount it behind the application's own authentication.
func ExampleNew() {
	page := core.Must(live.New(live.Config{Authorize: mayDo}))
	defer page.Close() //nolint:errcheck // always nil
	limiter := core.Must(core.New(core.Config{
		Name: "api", Observer: page,
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerMinute(1)}}},
	}))
	page.Manage(limiter)
	server := httptest.NewServer(page)
	defer server.Close()

	alice := core.Hit{Rule: "user", Key: "alice"}
	fmt.Println(limiter.Allow(context.Background(), alice), limiter.Allow(context.Background(), alice))
	order := strings.NewReader(`{"do":"unblock","limiter":"api","rule":"user","key":"alice"}`) // as the page sends it
	r, _ := http.NewRequest(http.MethodPost, server.URL, order)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Operator", "olga")
	resp, err := server.Client().Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	fmt.Println(resp.StatusCode, limiter.Allow(context.Background(), alice))
	// Output:
	// true false
	// 200 true
}

// The page forgets the failures of a login.
func ExamplePage_ManageLogin() {
	page := core.Must(live.New(live.Config{}))
	defer page.Close() //nolint:errcheck // always nil
	guard := core.Must(login.NewGuard(login.Config{Field: "username", Observer: page}))
	defer guard.Close() //nolint:errcheck // its counters are in memory
	page.ManageLogin("login", guard)

	server := httptest.NewServer(page)
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "?events")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	line, _ := bufio.NewReader(resp.Body).ReadString('\n')
	fmt.Println(strings.Contains(line, `"logins":["login"]`))
	// Output: true
}
