module github.com/floodgate-go/floodgate/adapters/connect

go 1.25.0

replace github.com/floodgate-go/floodgate => ../..

require (
	connectrpc.com/connect v1.21.0
	github.com/floodgate-go/floodgate v0.0.0
	go.uber.org/goleak v1.3.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa
	google.golang.org/protobuf v1.36.11
)
