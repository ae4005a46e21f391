// Command outage shows what each mode of package resilient does while Redis is gone.
//
//	go run ./examples/outage
package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func main() {
	log.SetFlags(0)
	// go-redis has a log of its own, with a line for each failed connection.
	logging.Disable()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1}) // nobody listens here
	defer func() { _ = client.Close() }()
	for _, config := range []resilient.Config{
		{OnFailure: resilient.Local, Instances: 2},
		{OnFailure: resilient.FailOpen},
		{OnFailure: resilient.FailClosed},
	} {
		limiter := core.Must(core.New(core.Config{
			Name:  "api",
			Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(4)}}},
			Store: core.Must(resilient.New(redisstore.New(client, redisstore.AnotherInstance()), config)),
		}))
		app := httplimit.Middleware(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		var answers []int
		for range 4 {
			w := httptest.NewRecorder()
			app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			answers = append(answers, w.Code)
		}
		fmt.Println(config.OnFailure, answers)
	}
}
