module github.com/floodgate-go/floodgate/adapters/echo5/internal/readerstest

go 1.25.0

require (
	github.com/floodgate-go/floodgate v0.0.0
	github.com/floodgate-go/floodgate/adapters/echo5 v0.0.0
	github.com/labstack/echo/v5 v5.4.4
)

require (
	github.com/felixge/httpsnoop v1.1.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	pgregory.net/rapid v1.2.0 // indirect
)

replace (
	github.com/floodgate-go/floodgate => ../../../..
	github.com/floodgate-go/floodgate/adapters/echo5 => ../..
)
