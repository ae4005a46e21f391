package sitetest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A name that the limiter cannot see reaches no handler.
func testAHiddenNameReachesNoHandler(t *testing.T, a *app) {
	status, _ := a.ask(t, from("127.0.0.2"), "203.0.113.1", http.MethodPost, "/login", "username=alice&password=x&pad="+strings.Repeat("x", 70_000))
	if status != http.StatusBadRequest {
		t.Errorf("behind padding: %d", status)
	}
	if status, _ := a.ask(t, from("127.0.0.2"), "203.0.113.1", http.MethodPost, "/login?username=alice", "password=x"); status != http.StatusBadRequest {
		t.Errorf("in the query: %d", status)
	}
	for i, row := range []struct{ query, form string }{
		{"?username=alice", "USERNAME=d$i&password=ok"},
		{"?Username=alice", "username=d$i&password=ok"},
		{"", "username=d$i&username[]=alice&password=ok"},
		{"", "userna[]me=alice&USERNAME=d$i&password=ok"},
		{"", "username=alice%E2%80%8B$i&password=ok"},
	} {
		got := hits(20, func(n int) int {
			ip := fmt.Sprintf("198.51.%d.%d", 100+i, n)
			status, _ := a.ask(t, from("127.0.0.2"), ip, http.MethodPost, "/login"+row.query, strings.ReplaceAll(row.form, "$i", fmt.Sprint(n)))
			return status
		})
		if got != "map[400:20]" { // the password is right: what reaches the handler is 200
			t.Errorf("%s with the form %s: %s", row.query, row.form, got)
		}
	}
}
