module github.com/floodgate-go/floodgate/adapters/echo5

go 1.25.0

require (
	github.com/floodgate-go/floodgate v0.0.0
	github.com/labstack/echo/v5 v5.4.4
)

require golang.org/x/time v0.15.0 // indirect

replace github.com/floodgate-go/floodgate => ../..
