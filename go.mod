module github.com/floodgate-go/floodgate

go 1.25.0

require (
	github.com/felixge/httpsnoop v1.0.4 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	pgregory.net/rapid v1.2.0 // indirect
)
