package pathtest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

const rerouted = `
policies:
  - {name: first, match: {paths: [/first], methods: [GET]}, limits: 9/h}
  - {name: second, match: {paths: [/second], methods: [POST]}, limits: 2/h}
  - {name: planned, match: {paths: [/**]}, limits: 9/h, dry-run: true}
  - {name: all, limits: 9/h}
`

// Rerouted tests an application whose handler of GET /first gives the request to the handler of
// POST /second, by the framework's own means, so that it passes the policies again: they count
// it each time, for the path that it then has.
func Rerouted(t *testing.T, serve func(*policy.Set) (address string)) {
	t.Helper()
	set := parse(t, rerouted)
	address := serve(set)
	statuses := ""
	for range 3 {
		status, handler := get(t, address, "/first")
		statuses += fmt.Sprint(status, " ", handler, ",")
	}
	if statuses != "200 second,200 second,429 ," {
		t.Errorf("the answers are %q, want 429 for the third, which is over the limit for its new path", statuses)
	}
	for name, want := range map[string]int64{"first": 3, "second": 2, "all": 5, "planned": 5} { // the third is denied the second time
		limiter := set.Limiter()
		if name == "planned" {
			limiter = set.DryRun()
		}
		d, err := limiter.Peek(t.Context(), 1, core.Hit{Rule: name})
		if got := d.Limit().Quota - d.Remaining; err != nil || got != want {
			t.Errorf("the policy %s has counted %d requests (%v), want %d", name, got, err, want)
		}
	}
}

const waitsByParameter = `
policies:
  - {name: tenants, match: {paths: ["/tenants/{id}"]}, key: 'param["id"]', limits: 2/h}
  - {name: slow, match: {paths: [/slow]}, in-flight: 1, wait: 20s}
`

// WaitsByParameter tests an application with the policies on the routes GET /tenants/{id} and
// GET /slow. handle is called by the handler of both.
func WaitsByParameter(t *testing.T, serve func(set *policy.Set, handle func()) (address string)) {
	t.Helper()
	set := parse(t, waitsByParameter)
	enter, leave := make(chan struct{}), make(chan struct{})
	slow := serve(set, func() { enter <- struct{}{}; <-leave })
	done := make(chan int, 3)
	for range cap(done) {
		go func() {
			status, _ := get(t, slow, "/slow")
			done <- status
		}()
	}
	for range cap(done) {
		<-enter
		select {
		case <-enter:
			t.Fatal("two requests run at once")
		default:
		}
		leave <- struct{}{}
		if status := <-done; status != http.StatusOK {
			t.Errorf("a request that waits: status %d", status)
		}
	}
	quick := serve(set, func() {})
	for _, tenant := range []string{"a", "b"} {
		got := ""
		for range 3 {
			status, _ := get(t, quick, "/tenants/"+tenant)
			got += fmt.Sprint(status, ",")
		}
		if got != "200,200,429," {
			t.Errorf("tenant %s: %s want 429 for the third", tenant, got)
		}
	}
}

func parse(t *testing.T, text string) *policy.Set {
	t.Helper()
	set, err := policy.Parse("policies.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set
}

// get returns the status and the name of the handler.
func get(t *testing.T, address, path string) (status int, handler string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get(Header)
}
