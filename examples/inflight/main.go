// Command inflight limits how many requests of a client run at a time.
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func main() {
	slots := core.Must(inflight.New(inflight.Config{Name: "reports", Max: 2, Key: keyfuncs.ClientIP()}))
	rate := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "client", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(100)}}}}))
	begun, finish := make(chan bool), make(chan bool)
	report := httplimit.Middleware(slots)(httplimit.Middleware(rate)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- true
		<-finish
	})))
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		report.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/report", http.NoBody))
		return w
	}
	done := make(chan int)
	for range 2 {
		go func() { done <- ask().Code }()
		<-begun
	}
	denied := ask()
	fmt.Println("a third request:", denied.Code, "Retry-After:", denied.Header().Get("Retry-After"))
	finish <- true
	fmt.Println("the first one is done:", <-done)
	go func() { done <- ask().Code }()
	<-begun
	close(finish)
	fmt.Println("both others:", <-done, <-done)
}
