module github.com/floodgate-go/floodgate

go 1.25.0

require (
	github.com/felixge/httpsnoop v1.1.0
	pgregory.net/rapid v1.2.0
)
