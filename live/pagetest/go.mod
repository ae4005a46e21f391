module github.com/floodgate-go/floodgate/live/pagetest

go 1.26.0

replace github.com/floodgate-go/floodgate => ../..

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
	github.com/floodgate-go/floodgate v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.20.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)
