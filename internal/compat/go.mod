module github.com/floodgate-go/floodgate/internal/compat

go 1.25.0

require (
	github.com/coder/websocket v1.8.14
	github.com/floodgate-go/floodgate v0.0.0
	github.com/go-chi/chi/v5 v5.2.5
	github.com/gorilla/websocket v1.5.3
)

require github.com/felixge/httpsnoop v1.1.0 // indirect

replace github.com/floodgate-go/floodgate => ../..
