package httplimit

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestThePausesOfManyHostsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := holds{longest: time.Hour}
		note := func(host, seconds string) {
			h.note(host, &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {seconds}}})
		}
		held := func(host string) bool { return !h.end(host, time.Now()).IsZero() }
		note("first", "10")
		for i := range maxHosts - 1 {
			note(fmt.Sprint(i), "20")
		}
		note("shorter", "5")
		if held("shorter") || !held("first") || len(h.until) != maxHosts {
			t.Errorf("the one that ends first is kept: %d hosts", len(h.until))
		}
		note("longer", "30")
		if held("first") || !held("longer") || !held("0") || len(h.until) != maxHosts {
			t.Errorf("the one that ends first is not forgotten: %d hosts", len(h.until))
		}
		time.Sleep(25 * time.Second)
		note("next", "1")
		if !held("next") || !held("longer") || len(h.until) != 2 {
			t.Errorf("%d hosts, want the two whose pauses are not over", len(h.until))
		}
	})
}
