package httplimit_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
)

// A pause gets longer while a request is held back: MaxHold is for all of its wait.
func TestAPauseThatGetsTooLongEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := httplimit.Transport(perTarget(0, core.PerHour(1000)), trips(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				time.Sleep(3 * time.Second)
			}
			return answer(429, "Retry-After", "4"), nil
		}), httplimit.ObeyRetryAfter(time.Minute), httplimit.MaxHold(5*time.Second))
		slow := make(chan bool)
		go func() { defer close(slow); _, _ = send(t.Context(), t, rt, "http://a/slow") }()
		synctest.Wait()
		_, _ = send(t.Context(), t, rt, "http://a/")
		status, denied := send(t.Context(), t, rt, "http://a/")
		if denied == nil {
			t.Fatalf("status %d", status)
		}
		if status != 0 || !denied.Held || denied.Waited != 4*time.Second || denied.Decision.RetryAfter != 3*time.Second {
			t.Errorf("%d, %v after %v", status, denied, denied.Waited)
		}
		<-slow
	})
}
