// This file tests a whole handler in a bubble of testing/synctest.
//
//	go test ./examples/testing

package shop_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
)

func TestTheAPIIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		app := httplimit.PerIP(2, time.Minute)(api)
		get := func() int {
			w := httptest.NewRecorder()
			app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			return w.Code
		}
		for i, want := range []int{200, 200, 429} {
			if got := get(); got != want {
				t.Errorf("request %d: %d, want %d", i+1, got, want)
			}
		}
		time.Sleep(2 * time.Minute)
		if got := get(); got != 200 {
			t.Errorf("two minutes later: %d, want 200", got)
		}
	})
}
