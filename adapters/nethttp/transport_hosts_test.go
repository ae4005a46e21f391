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
		note("extended", "1")
		note("first", "10")
		for i := range maxHosts - 2 {
			note(fmt.Sprint(i), "20")
		}
		note("extended", "40")
		note("shorter", "5")
		if held("shorter") || !held("first") || len(h.pauses.of) != maxHosts {
			t.Errorf("the one that ends first is kept: %d hosts", len(h.pauses.of))
		}
		note("longer", "30")
		if held("first") || !held("longer") || !held("extended") || !held("0") || len(h.pauses.of) != maxHosts {
			t.Errorf("the one that ends first is not forgotten: %d hosts", len(h.pauses.of))
		}
		time.Sleep(25 * time.Second)
		note("next", "1")
		if !held("next") || !held("longer") || !held("extended") || len(h.pauses.of) != 3 {
			t.Errorf("%d hosts, want the three whose pauses are not over", len(h.pauses.of))
		}
	})
}

// An answer of one more host does not look at all hosts: every request needs the same lock.
func BenchmarkTheAnswerOfOneMoreHost(b *testing.B) {
	h := holds{longest: time.Hour}
	note := func(n, seconds int) {
		h.note(fmt.Sprint(n), &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {fmt.Sprint(seconds)}}})
	}
	for n := range maxHosts {
		note(n, 1000)
	}
	for n := 0; b.Loop(); n++ {
		note(maxHosts+n, 1001)
	}
}
